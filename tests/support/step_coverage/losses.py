"""Cases: losses, each after one small network."""

from __future__ import annotations

from typing import Any

from step_coverage.case import CLASSES, case, classes, functional, nn, normal, tokens, torch, uniform


def _vectors(width: int = CLASSES) -> Any:
    """Return a network of `width` outputs for a vector of 4."""
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, width))


def _weights() -> Any:

    return torch.linspace(0.5, 1.5, CLASSES)


def _cross_entropies(output: Any, target: Any) -> Any:
    weight = _weights().to(output)
    return (
        functional.cross_entropy(output, target, label_smoothing=0.1)
        + functional.cross_entropy(output, target, weight=weight)
        + functional.cross_entropy(output, target, weight=weight, ignore_index=2, label_smoothing=0.2)
        + 0.1 * functional.cross_entropy(output, target, reduction="sum")
        + functional.cross_entropy(output, target, reduction="none").square().mean()
    )


@case("Loss", normal(4), loss=_cross_entropies, batch=4)
def cross_entropy() -> Any:
    """Cross entropy: label smoothing, class weights, ignore_index, sum, none."""
    return _vectors()


@case(
    "Loss",
    normal(3, 5, 4),
    y=tokens(CLASSES, 5, 4),
    loss=lambda output, target: functional.cross_entropy(output, target, ignore_index=1, weight=_weights().to(output)),
)
def cross_entropy_of_pixels() -> Any:
    """Cross entropy of every pixel, with ignore_index and weights."""
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, CLASSES, 1))


@case(
    "Loss",
    normal(4),
    y=uniform(CLASSES),
    loss=lambda output, target: functional.cross_entropy(
        output, target / target.sum(1, keepdim=True), label_smoothing=0.1
    ),
)
def cross_entropy_of_probabilities() -> Any:
    """Cross entropy with probabilities as the target."""
    return _vectors()


def _nll(output: Any, target: Any) -> Any:
    logs = functional.log_softmax(output, dim=1)
    return functional.nll_loss(logs, target) + functional.nll_loss(logs, target, _weights().to(output), ignore_index=0)


@case("Loss", normal(4), y=classes(), loss=_nll, batch=4)
def nll() -> Any:
    """Negative log likelihood, with weights and ignore_index."""
    return _vectors()


def _regression(output: Any, target: Any) -> Any:
    return (
        functional.mse_loss(output, target)
        + functional.l1_loss(output, target)
        + functional.smooth_l1_loss(output, target, beta=0.5)
        + functional.huber_loss(output, target, delta=0.7)
        + 0.1 * functional.mse_loss(output, target, reduction="sum")
        + functional.l1_loss(output, target, reduction="sum") * 0.1
    )


@case("Loss", normal(4), y=normal(3), loss=_regression)
def regression() -> Any:
    """MSE, L1, smooth L1, Huber; mean and sum."""
    return _vectors(3)


def _binary(output: Any, target: Any) -> Any:
    weight = _weights()[:3].to(output)
    return (
        functional.binary_cross_entropy_with_logits(output, target)
        + functional.binary_cross_entropy_with_logits(output, target, weight=weight, pos_weight=2 * weight)
        + functional.binary_cross_entropy(output.sigmoid(), target)
        + functional.soft_margin_loss(output, target.round() * 2 - 1)
    )


@case("Loss", normal(4), y=uniform(3), loss=_binary)
def binary() -> Any:
    """BCE with logits (weight, pos_weight), BCE, soft margin."""
    return _vectors(3)


def _distances(output: Any, target: Any) -> Any:
    sign = (target[:, 0] > 0).to(output) * 2 - 1
    # Of some rows one class, two or none: those behind the first negative number do not count.
    labels = (target > -0.5).to(target) * (target.argsort(1) + 1) - 1
    labels = labels.long()
    return (
        functional.kl_div(output.log_softmax(1), target.softmax(1), reduction="batchmean")
        + functional.cosine_embedding_loss(output, target, sign, margin=0.1)
        + functional.triplet_margin_loss(output, target, target.flip(1))
        + functional.margin_ranking_loss(output[:, 0], output[:, 1], sign, margin=0.2)
        + functional.hinge_embedding_loss(output[:, 2], sign)
        + functional.poisson_nll_loss(output, target.abs())
        + functional.multi_margin_loss(output, target.argmax(1))
        + functional.multilabel_margin_loss(output, labels)
    )


@case("Loss", normal(4), y=normal(3), loss=_distances)
def distances() -> Any:
    """KL divergence, cosine embedding, triplet, ranking and multilabel margins, hinge, Poisson NLL."""
    return _vectors(3)
