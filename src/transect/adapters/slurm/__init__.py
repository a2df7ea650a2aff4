"""Slurm: what becomes of jobs and steps, and what it says of a system file."""
