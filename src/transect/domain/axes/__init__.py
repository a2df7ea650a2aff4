"""The axes of the cells of every stage: what a study can vary, by subject."""
