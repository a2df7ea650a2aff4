"""Findings: one sentence each, with its evidence and its confidence."""
