"""Recording: decorators, scopes and what is written of them. Imports neither duckdb nor pyarrow."""
