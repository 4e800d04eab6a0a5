"""One call for a framework: `rt.instrument("langchain")`. A module per framework; none is loaded before it is asked for."""
