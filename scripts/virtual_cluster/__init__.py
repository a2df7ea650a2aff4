"""A throw-away multi-node Slurm cluster on one Linux machine, in private namespaces."""
