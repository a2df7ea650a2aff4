"""Data has nothing to say of its own: trainings show what was made of it."""
