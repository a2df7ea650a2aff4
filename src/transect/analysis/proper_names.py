"""What people call frameworks, runtimes, exporters and ways to join ranks: a plug-in that is not here has its own name."""

from __future__ import annotations

from collections.abc import Mapping

_ONNX_RUNTIME = {
    "python": "Python",
    "python-iobinding": "Python, bound arrays",
    "python-openvino": "Python, OpenVINO",
    "c": "C",
    "cpp": "C++",
    "go": "Go",
    "rust": "Rust",
    "java": "Java",
    "kotlin": "Kotlin",
    "javascript": "JavaScript",
    "browser": "browser",
}
_RUNTIMES = {name: f"ONNX Runtime ({language})" for name, language in _ONNX_RUNTIME.items()} | {
    "torch-eager": "PyTorch",
    "torch-compile": "PyTorch, compiled",
    "torchscript": "TorchScript",
    "tensorflow": "TensorFlow",
    "ort-training": "ONNX Runtime Training",
    "ort-training-torchscript": "ONNX Runtime Training (TorchScript)",
}
_FRAMEWORKS = {
    "torch": "PyTorch",
    "tensorflow": "TensorFlow",
    "mxnet": "MXNet",
    "caffe": "Caffe",
    "cntk": "CNTK",
    "keras-2": "Keras 2",
    "jax": "JAX",
    "keras-jax": "Keras on JAX",
    "torchax": "JAX by torchax",
    "keras-tensorflow": "Keras on TensorFlow",
    "keras-torch": "Keras on PyTorch",
    "go": "Go",
    "go-openblas": "Go with OpenBLAS",
    "go-gorgonia": "Gorgonia",
    "go+numpy": "Go and numpy together",
}
_STRATEGIES = {
    "async": "a parameter server",
    "ddp-gloo": "DDP over Gloo",
    "ddp-mpi": "DDP over MPI",
    "ddp-nccl": "DDP over NCCL",
    "fsdp": "FSDP",
    "horovod-gloo": "Horovod over Gloo",
    "horovod-mpi": "Horovod over MPI",
    "jax-data-parallel": "JAX data parallelism",
    "kvstore-dist-sync": "MXNet's key-value store",
    "mpi-allreduce": "MPI all-reduce",
    "mpi-bcast-reduce": "MPI broadcast and reduce",
    "mpi-hierarchical": "hierarchical MPI reduction",
    "mpi-overlap": "overlapped MPI reduction",
    "mpi-overlap-bcast": "overlapped MPI broadcast",
    "mpi-pipeline": "an MPI pipeline",
    "mpi-sendrecv": "MPI send and receive",
    "multiworker-nccl": "MultiWorkerMirrored over NCCL",
    "multiworker-ring": "MultiWorkerMirrored in a ring",
    "published-allreduce": "the published all-reduce",
    "published-sendrecv": "the published send and receive",
    "spatial": "images cut in strips",
    "tensor-parallel": "matrices cut in columns",
    "torch-pipeline": "PyTorch's pipeline",
}
_EXPORTERS = {
    "dynamo": "torch.export",
    "torchscript": "TorchScript",
    "keras": "Keras",
    "keras-torch": "Keras through PyTorch",
    "mxnet": "MXNet",
    "onnx": "onnx",
    "sklearn": "skl2onnx",
}
_MODELS = {
    "cuda": "CUDA",
    "go": "Go",
    "julia": "Julia",
    "opencl": "OpenCL",
    "openacc": "OpenACC",
    "openmp": "OpenMP",
    "openmp-target": "OpenMP offloading",
    "rust": "Rust",
}
OF_AXIS: Mapping[str, Mapping[str, str]] = {
    "runtime": _RUNTIMES,
    "framework": _FRAMEWORKS,
    "strategy": _STRATEGIES,
    "exporter": _EXPORTERS,
    "implementation": _MODELS,
    "benchmark": {"message-sweep": "MPI (mpi4py)", "message-sweep-torch": "torch.distributed"},
    "provider": {"cpu": "the CPU", "cuda": "CUDA", "tensorrt": "TensorRT"},
}
# What leads to the value of an axis in a sentence, where it is not `with`.
WITH = {"exporter": "exported by"}
# How an option of a benchmark is said, where not by its name and value; empty: it is about measuring alone.
OPTION_WORDS = {
    "compiler": "{}",
    "compared_size": "",
    "iterations": "",
    "max_size": "",
    "pin": "pinned {}",
    "poses": "{} poses",
    "ppwi": "{} poses per work-item",
    "seconds": "",
    "warm_ups": "",
}
