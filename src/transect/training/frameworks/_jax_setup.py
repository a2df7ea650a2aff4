"""JAX with a cell's threads, device and precision, with Keras on it or without."""

from __future__ import annotations

import os
from typing import Any


def configure(threads: int, device: str, precision: str) -> Any:
    """Set up and return the module; once per process, before anything makes JAX's devices."""
    # XLA has no option for it: its pools take their size from NPROC when the client is made.
    os.environ["NPROC"] = str(threads)
    # Else XLA takes three quarters of a GPU's memory at once.
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax

    jax.config.update("jax_platforms", device)
    if device == "cuda":
        # Else XLA rounds the factors of a product to TF32; float32 means float32 here.
        jax.config.update("jax_default_matmul_precision", "highest")
    jax.config.update("jax_enable_x64", precision == "fp64")
    return jax
