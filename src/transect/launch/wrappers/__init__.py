"""Container programs, one per file: how each runs a command inside an image."""
