"""What runs the engine: Snakemake, Slurm."""
