"""transect: measure deep learning across frameworks, node counts and runtimes."""

__version__ = "0.1.0"
