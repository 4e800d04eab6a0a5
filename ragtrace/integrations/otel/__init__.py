"""Spans that other instrumentations wrote, as stage runs: from a provider in this process, or from a collector."""
