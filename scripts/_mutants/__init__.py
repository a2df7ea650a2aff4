"""Single edits of the source, and whether a test notices: see docs/testing.md."""
