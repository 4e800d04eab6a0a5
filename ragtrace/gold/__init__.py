"""Gold labels: read from a file, placed in parsed texts, checked. Knows the store, not who records or reports."""
