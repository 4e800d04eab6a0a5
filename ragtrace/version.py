"""The version, apart from the package itself: what imports that may reach everything."""

__all__ = ["__version__"]

__version__ = "0.1.0"
