"""Benchmarks that transect runs itself: one file each, found by pkgutil."""
