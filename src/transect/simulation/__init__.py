"""Clocks of ranks: what a step will take."""
