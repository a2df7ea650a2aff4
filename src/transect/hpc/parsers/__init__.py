"""Parsers of benchmark logs: one file per benchmark, found by pkgutil."""
