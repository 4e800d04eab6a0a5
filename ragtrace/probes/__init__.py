"""Probes: what was lost is asked for again, of the same index, and the answers are recorded as rows of their own."""

from ragtrace.probes.retrievers import Get, Retriever, Retrievers, Search

__all__ = ["Get", "Retriever", "Retrievers", "Search"]
