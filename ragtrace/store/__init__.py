"""The store: logs merged into one DuckDB file, its views, its safety, what it says of itself. Never imports recording."""
