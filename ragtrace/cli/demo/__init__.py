"""`ragtrace demo`: a question answering service over the Python language reference, traced and reported.

`pipeline` is the service and the one module that uses ragtrace; read it as the example of how to trace one.
`parse`, `chunking`, `search` and `corpus` know nothing of tracing, `main` runs the whole.
"""
