"""The same pipeline, decorated by hand and instrumented by one call, in real frameworks with models made here."""
