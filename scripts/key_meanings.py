"""The words of generate-docs.py for the keys of studies and systems."""

from __future__ import annotations

# What a field means where the model itself does not say: a description in the model wins.
MEANINGS = {
    "Parameters.epochs": "passes over the training part",
    "Parameters.learning_rate": "of SGD",
    "Parameters.momentum": "v = momentum v + g; w -= learning_rate v",
    "Parameters.weight_decay": "g += weight_decay w",
    "Parameters.loss": "mean over the batch; `mse` is half the squared distance to one-hot",
    "Parameters.test_fraction": "share of each class that is kept for testing",
    "Parameters.dataset_options": "passed to the dataset's `load`",
    "System.name": "names the system",
    "System.description": "for people",
    "System.gpus_per_node": "cells that need more are refused",
    "System.account": "`sbatch --account`",
    "System.partition": "`sbatch --partition`; null: the cluster's default",
    "System.qos": "`sbatch --qos`",
    "System.constraint": "`sbatch --constraint`",
    "System.interconnect": "for people",
    "System.scheduler": "`slurm` puts cells into jobs",
    "Network.description": "for people",
}
