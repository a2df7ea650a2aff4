"""Whoever runs the engine: Snakemake, Slurm."""
