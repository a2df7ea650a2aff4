"""Snakemake: what the Snakefile asks of a plan, and the handlers of its run."""
