"""Pages made from code."""
