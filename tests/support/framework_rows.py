"""Every framework with every way to distribute it that runs without a GPU."""

from __future__ import annotations

from thirds import THIRD

FRAMEWORKS = ("numpy", "torch", "tensorflow", "keras-tensorflow", "keras-torch", "keras-jax", "jax", "keras-2", "mxnet")
SINGLE = [(name, "single") for name in FRAMEWORKS]
ROWS = [
    *((name, strategy) for name in FRAMEWORKS for strategy in ("mpi-allreduce", "mpi-sendrecv")),
    *(("torch", name) for name in ("ddp-gloo", "fsdp", "horovod-gloo", "horovod-mpi")),
    *(("tensorflow", name) for name in ("multiworker-ring", "horovod-gloo", "horovod-mpi")),
    ("keras-torch", "ddp-gloo"),
    ("keras-jax", "jax-data-parallel"),
    ("jax", "jax-data-parallel"),
    *(("keras-2", name) for name in ("horovod-gloo", "horovod-mpi")),
    *(("mxnet", name) for name in ("kvstore-dist-sync", "horovod-gloo", "horovod-mpi")),
]
# A third a day: on nodes besides those of numpy and torch, on one machine besides two that a test compares.
ON_NODES = [row for number, row in enumerate(ROWS) if row[0] in ("numpy", "torch") or number % 3 == THIRD]
COMPARED = {("torch", "single"), ("torch", "ddp-gloo")}
EVERY = SINGLE + ROWS
ON_ONE_MACHINE = [row for number, row in enumerate(EVERY) if row in COMPARED or number % 3 == THIRD]
# What they run in.
ENVIRONMENTS = ("torch", "tensorflow", "keras-jax", "mxnet", "horovod-torch", "horovod-tensorflow", "horovod-mxnet")
# What no wheel of this machine can do, with the reason that the record has to give.
SKIPPED = {
    ("torch", "ddp-nccl"): "nccl works between GPUs",
    ("torch", "ddp-mpi"): "built from source with MPI",
    ("tensorflow", "multiworker-nccl"): "works on cuda",
    ("numpy", "ddp-gloo"): "of torch, not of numpy",
    ("keras-torch", "horovod-mpi"): "keras-torch",
    ("caffe", "single"): "Caffe's last release is 1.0",
    ("cntk", "single"): "for Python 2.7, 3.5 and 3.6",
}
