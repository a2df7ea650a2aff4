"""Slurm: the fate of jobs and steps, accounting, and the doctor of system files."""
