"""Gorgonia, the deep-learning library in Go: its graph, its automatic differentiation and its tape machine."""

from __future__ import annotations

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks.go_ import GoFramework
from transect.training.layered import LayeredModel
from transect.training.layers import Conv2d, LayerNorm, walk
from transect.training.models import Model


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

    def builds(self, model: Model) -> str | None:
        """Its convolution is one product over unfolded windows: it has no groups."""
        if isinstance(model, LayeredModel):
            for placed in walk(model.layers, model.sample):
                if isinstance(placed.layer, Conv2d) and placed.layer.groups > 1:
                    return f"Gorgonia's convolutions have no groups, and layer {placed.name} has {placed.layer.groups}"
        return super().builds(model)

    def supports(self, cell: TrainCell) -> str | None:
        """As the trainer from scratch; on a GPU one rank, by the program of `trainer-go-gorgonia-cuda`."""
        if cell.device == "cuda" and cell.strategy != "single":
            return "Gorgonia's CUDA build is made without MPI: it trains on one GPU, by the strategy single"
        on_cpu = cell.model_copy(update={"device": "cpu"})
        return super().supports(on_cpu if cell.device == "cuda" else cell)
