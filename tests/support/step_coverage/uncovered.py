"""What cannot be exported, and why; each gives an error that names the operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from step_coverage.case import CLASSES, Case, Sample, classes, functional, nn, normal, tokens, torch

# The case, why it is not covered, and what the error says of the operator.
UNCOVERED: dict[str, tuple[Case, str, str]] = {}


def _uncovered(why: str, error: str, x: Sample) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Decorate a function that builds a module of which no step can be made."""

    def add(build: Callable[[], Any]) -> Callable[[], Any]:
        name = build.__name__.replace("_", "-")
        what = (build.__doc__ or "").strip().rstrip(".")
        made = Case(name=name, group="", what=what, build=build, x=(x,), y=classes())
        UNCOVERED[name] = (made, why, error)
        return build

    return add


def _function(function: Callable[[Any], Any]) -> Any:
    """Return a network with a function between two layers."""

    class Function(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 4), nn.LazyLinear(CLASSES)

        def forward(self, x: Any) -> Any:
            return self.last(function(self.first(x)))

    return Function()


@_uncovered(
    "it draws from torch's generator, which no other language has; dropout's masks are made otherwise",
    "rrelu",
    normal(4),
)
def random_slopes() -> Any:
    """RReLU, and all that draws random numbers but dropout."""
    return nn.Sequential(nn.Linear(4, 4), nn.RReLU(), nn.Linear(4, CLASSES))


@_uncovered("how many elements it gives depends on their values", "masked_select", normal(4))
def boolean_index() -> Any:
    """Indexing by a condition, masked_select, nonzero, unique."""
    return _function(lambda x: x + torch.zeros_like(x).masked_select(x > 0).sum())


@_uncovered("the graph would depend on a number that is known only when it runs", "", normal(4))
def value_in_condition() -> Any:
    """A condition of Python on a tensor's values; gaussian_nll_loss, which checks some."""
    return _function(lambda x: x * 2 if x.sum() > 0 else x)


@_uncovered("ONNX has no such decomposition of matrices", "linalg", normal(4, 4))
def matrix_decompositions() -> Any:
    """SVD, eigenvalues, Cholesky, inverse, determinant."""
    return _function(lambda x: torch.linalg.svdvals(x))


@_uncovered("ONNX has few operators of complex numbers", "fft", normal(4))
def fourier() -> Any:
    """FFT and complex numbers."""
    return _function(lambda x: torch.fft.rfft(x).real)


@_uncovered("a gradient must be dense", "sparse", tokens(7, 4))
def sparse_embedding() -> Any:
    """Embedding with sparse gradients."""
    return nn.Sequential(nn.Embedding(7, 3, sparse=True), nn.Flatten(), nn.Linear(12, CLASSES))


@_uncovered("such a window has no maximum", "max_pool2d", normal(2, 1, 1))
def pooling_of_padding() -> Any:
    """Max pooling with a window that sees nothing but padding, as one that is dilated beyond the plane."""
    pool = nn.MaxPool2d((2, 1), 1, (1, 0), (2, 1))
    return nn.Sequential(nn.Conv2d(2, 2, 1), pool, nn.Flatten(), nn.LazyLinear(CLASSES))


@_uncovered("its recursion over the labels has no operators in ONNX", "ctc", normal(6, 4))
def connectionist_loss() -> Any:
    """CTC loss."""

    def losses(x: Any) -> Any:
        logs = x.log_softmax(-1).transpose(0, 1)
        count = x.shape[0]
        targets = torch.ones(count, 2, dtype=torch.int64)
        lengths = torch.full((count,), 6), torch.full((count,), 2)
        return functional.ctc_loss(logs, targets, *lengths, reduction="none")[:, None]

    return _function(losses)
