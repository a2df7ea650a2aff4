"""One launcher per file."""
