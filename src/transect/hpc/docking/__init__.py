"""The programming models that the docking kernel is written in: one file each, found by pkgutil."""
