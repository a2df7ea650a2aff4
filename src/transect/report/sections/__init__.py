"""Sections: what each says of a study. A stage's `report.py` lists those that belong to it."""
