"""Gorgonia, the deep-learning library in Go: its graph, its automatic differentiation and its tape machine."""

from __future__ import annotations

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks.go_ import GoFramework
from transect.training.layers import LayerNorm


@FRAMEWORKS.register("go-gorgonia", "gorgonia")
class GoGorgonia(GoFramework):
    """Gorgonia 0.9.18 in pure Go, or with its CUDA build; docs/go.md says what is wrong in it."""

    environment = "trainer-go-gorgonia"
    program = "transect-trainer-go-gorgonia"
    lacks = (LayerNorm,)
    # The compiler of CUDA, which lies beside them, only builds it.
    loads_on_gpu = (
        "nvidia_cublas_cu11",
        "nvidia_cuda_nvrtc_cu11",
        "nvidia_cuda_runtime_cu11",
        "nvidia_cudnn_cu11",
        "nvidia_curand_cu11",
    )

    def supports(self, cell: TrainCell) -> str | None:
        """As the trainer from scratch; on a GPU one rank, by the program of `trainer-go-gorgonia-cuda`."""
        if cell.device == "cuda" and cell.strategy != "single":
            return "Gorgonia's CUDA build is made without MPI: it trains on one GPU, by the strategy single"
        on_cpu = cell.model_copy(update={"device": "cpu"})
        return super().supports(on_cpu if cell.device == "cuda" else cell)
