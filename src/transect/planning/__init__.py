"""From a study to its cells, and what each cell's outcome depends on."""
