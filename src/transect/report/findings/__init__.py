"""Findings: one sentence each, with its evidence and how sure it is."""
