"""Logs: how records look as bytes, how they are appended, how they are read. Standard library only."""
