"""Provenance, the interference guard and statistics that are part of measuring itself."""
