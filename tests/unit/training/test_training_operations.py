"""The counts behind bounds: held to what numpy executes, number by number."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import pytest
from counted_arrays import executed, random_numbers

from transect.training.costs import step_costs
from transect.training.frameworks._numpy_chain import LayeredComputation
from transect.training.frameworks._numpy_layers import forward
from transect.training.layered import LayeredModel
from transect.training.layers import (
    BatchNorm2d,
    Branches,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    LayerNorm,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Sigmoid,
    inner,
    shapes,
    weight_shapes,
)
from transect.training.layout import Layout
from transect.training.losses import LOSSES
from transect.training.operations import layer_operations, prediction_operations, training_operations
from transect.training.optimisers import OPTIMISERS
from transect.training.workloads import WORKLOADS, Parameters, model_of

BATCH = 5
RULE = Parameters(batch=BATCH, epochs=1, learning_rate=0.1, quality_target=1)


@dataclass(frozen=True)
class Beyond:
    """What numpy's code executes for a batch beyond what the layer asks for, and why."""

    forward: int = 0
    weights: int = 0
    inputs: int = 0
    why: str = ""


LAYERS = {
    "linear": (Linear(7, 3), (7,), Beyond(forward=BATCH * 3, why="bias after the product")),
    "convolution": (
        Conv2d(2, 3, 3, bias=False),
        (2, 6, 5),
        Beyond(inputs=BATCH * 4 * 3 * 2 * 9, why="windows of gradients are added up"),
    ),
    "convolution with bias and stride": (
        Conv2d(2, 3, 2, stride=2),
        (2, 7, 5),
        Beyond(forward=BATCH * 3 * 6, inputs=BATCH * 3 * 2 * 2 * 4, why="bias; adding up"),
    ),
    "convolution in groups": (
        Conv2d(4, 6, 2, bias=False, groups=2),
        (4, 3, 3),
        Beyond(inputs=BATCH * 4 * 4 * 2 * 2, why="adding up"),
    ),
    # 4 x 4 windows have 16 x 9 places, of which 10 x 10 are in the image.
    "convolution with padding": (
        Conv2d(2, 3, 3, padding=1, bias=False),
        (2, 4, 4),
        Beyond(
            forward=BATCH * 2 * 2 * 3 * (16 * 9 - 100),
            weights=BATCH * 2 * 2 * 3 * (16 * 9 - 100),
            inputs=BATCH * 2 * 2 * 3 * (16 * 9 - 100) + BATCH * 16 * 2 * 9,
            why="products with zeros; adding up",
        ),
    ),
    "batch norm": (
        BatchNorm2d(3),
        (3, 4, 2),
        # Forwards 7 a number (centred, squares of that, normalised) and what is once per channel:
        # mean and variance divided, seven for running statistics, three for the scale.
        Beyond(forward=BATCH * 24 * 2 + 3 * 12, inputs=3 * 3, why="two passes; once per channel"),
    ),
    # Seven a number for the input as it is; what is once per sample: means divided, and three for the scale.
    "layer norm": (LayerNorm(6), (6,), Beyond(forward=BATCH * 5, inputs=BATCH * 2, why="once per sample")),
    "pooling": (
        MaxPool2d(2),
        (3, 4, 6),
        Beyond(inputs=BATCH * 3 * 6 * 4 * 2, why="every place of a window is masked and added"),
    ),
    "pooling over one another": (
        MaxPool2d(3, stride=1),
        (2, 4, 4),
        Beyond(forward=BATCH * 2 * (4 * 8 - 12), inputs=BATCH * 2 * 4 * 9 * 2, why="as above"),
    ),
    "average": (GlobalAveragePool(), (3, 4, 5), Beyond()),
    "rectifier": (ReLU(), (3, 4), Beyond()),
    "sigmoid": (Sigmoid(), (9,), Beyond()),
    "flatten": (Flatten(), (2, 3, 4), Beyond()),
}


def arrays(layers):
    """Return random weights, and gradients of the trained ones."""
    weights = {w.name: random_numbers(*w.shape) for w in weight_shapes(layers)}
    for name, array in weights.items():
        if name.endswith("running_var"):
            np.absolute(array, out=array)
    trained = [w for w in weight_shapes(layers) if w.trained]
    return weights, {w.name: random_numbers(*w.shape) for w in trained}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layers_count_is_what_numpy_executes_less_what_it_need_not(name):
    layer, sample, beyond = LAYERS[name]
    after = shapes((layer,), sample)[-1]
    needed = layer_operations(layer, sample, after)
    weights, _ = arrays((layer,))
    x, g = random_numbers(BATCH, *sample), random_numbers(BATCH, *after)
    forwards, (y, backward) = executed(lambda x: forward(layer, x, list(weights.values())), x)
    assert y.shape == g.shape
    whole, _ = executed(lambda g: backward(g, True), g)
    of_weights = executed(lambda g: backward(g, False), g)[0] if weights else 0
    assert forwards == BATCH * needed.forward + beyond.forward
    assert of_weights == BATCH * needed.weights + beyond.weights
    assert whole - of_weights == BATCH * needed.inputs + beyond.inputs


def beyond(layer, sample):
    """What numpy executes for a layer of `NETS` beyond its count: for one sample."""
    if isinstance(layer, Linear):
        return layer.outputs
    if chains := inner(layer).values():
        return sum(beyond(part, sample) for chain in chains for part in chain)
    return prod(shapes((layer,), sample)[-1]) * getattr(layer, "bias", 0)


# No layer but linear ones and convolutions whose input's gradient nobody needs costs numpy more.
FIRST = Conv2d(1, 2, 3)
NETS = {
    "nothing before the first weight": ((Linear(6, 5), Sigmoid(), Linear(5, 4)), (6,)),
    "no weight before it either": ((Flatten(), ReLU(), Linear(6, 5), ReLU(), Linear(5, 4)), (2, 3)),
    "a residual layer first": ((Residual((FIRST, ReLU()), (FIRST,)), GlobalAveragePool(), Linear(2, 4)), (1, 5, 4)),
    "a residual layer within": ((Linear(6, 5), Residual((Linear(5, 3), ReLU(), Linear(3, 5))), Linear(5, 4)), (6,)),
    "branches first": ((Branches(((FIRST,), (FIRST, ReLU()))), GlobalAveragePool(), Linear(4, 4)), (1, 5, 4)),
    "branches of one input": ((Branches(((), (ReLU(),), (ReLU(),))), GlobalAveragePool(), Linear(6, 4)), (2, 3, 3)),
    "an identity first": ((Residual((ReLU(),), ()), Linear(6, 4)), (6,)),
}


@pytest.mark.parametrize("name", NETS)
def test_numpy_computes_no_gradient_that_nobody_needs(name):
    layers, sample = NETS[name]
    weights, gradients = arrays(layers)
    computation = LayeredComputation(layers, RULE.model_copy(update={"loss": "mse"}), weights, gradients)
    x, y = random_numbers(BATCH, *sample), np.arange(BATCH) % 4
    done, _ = executed(computation.loss, x, y)
    asked = training_operations(layers, sample) + LOSSES.get("mse").operations(4)
    shape, more = sample, 4
    for layer, after in zip(layers, shapes(layers, sample)[1:], strict=True):
        more, shape = more + beyond(layer, shape), after
    # The mean's 1/n is a factor of each output's gradient.
    assert done == BATCH * (asked + more)
    assert LayeredModel(layers, sample).costs(RULE.model_copy(update={"loss": "mse"})).training_flops == asked


@pytest.mark.parametrize(
    ("kind", "beyond"),
    # 1/n; the largest output, what is left of it, 1/n.
    [("mse", BATCH * 4), ("cross-entropy", BATCH * (3 * 4 - 1))],
)
def test_the_losss_count_is_what_numpy_executes_less_what_it_need_not(kind, beyond):
    outputs, y = random_numbers(BATCH, 4), np.arange(BATCH) % 4
    done, _ = executed(lambda o: LOSSES.get(kind).value_and_gradient(RULE, o, y), outputs)
    assert done == BATCH * LOSSES.get(kind).operations(4) + beyond


@pytest.mark.parametrize(
    ("name", "rule", "operations", "states", "beyond"),
    [
        ("sgd", {}, 2, 0, 0),
        ("sgd", {"momentum": 0.9}, 4, 1, 0),
        ("sgd", {"momentum": 0.9, "weight_decay": 0.1}, 6, 1, 0),
        ("nesterov", {}, 2, 0, 0),
        ("nesterov", {"momentum": 0.9}, 6, 1, 0),
        ("nesterov", {"momentum": 0.9, "weight_decay": 0.1}, 8, 1, 0),
        # Factors 1 - beta of both averages, and the correction of the second.
        ("adamw", {}, 10, 2, 3),
        ("adamw", {"weight_decay": 0.1}, 11, 2, 3),
        ("adam", {}, 10, 2, 3),
        ("adam", {"weight_decay": 0.1}, 12, 2, 3),
        ("rmsprop", {}, 8, 1, 1),
        ("rmsprop", {"momentum": 0.9}, 10, 2, 1),
        ("rmsprop", {"momentum": 0.9, "weight_decay": 0.1}, 12, 2, 1),
        ("adagrad", {}, 7, 1, 0),
        ("adagrad", {"weight_decay": 0.1}, 9, 1, 0),
        ("lamb", {}, 14, 2, 4),
        ("lamb", {"weight_decay": 0.1}, 16, 2, 4),
    ],
)
def test_an_optimisers_count_is_what_numpy_executes(name, rule, operations, states, beyond):
    optimiser = OPTIMISERS.get(name)
    parameters = RULE.model_copy(update={"optimiser": name, **rule})
    assert optimiser.operations(parameters) == operations
    assert optimiser.live_states(parameters) == states <= optimiser.states
    kept = [abs(random_numbers(50)) for _ in range(optimiser.states)]
    before = [np.array(state) for state in kept]
    given = (parameters, random_numbers(50), random_numbers(50), kept, 0.1, 3)
    done, _ = executed(optimiser.update, *given)
    assert done == 50 * (operations + beyond)
    moved = sum(bool((np.asarray(a) != b).any()) for a, b in zip(kept, before, strict=True))
    assert moved == states


def test_the_published_image_net_by_hand():
    """A step of 60 images: two products with 67,500 x 40 weights, not three."""
    workload = WORKLOADS.get("images-mlp")
    found = step_costs(model_of(workload), workload.defaults, 60, Layout(1), "fp32")
    products = 60 * 2 * (2 * 67_500 * 40 + 3 * (40 * 10 + 10 * 6))
    # Sigmoids forwards and backwards, biases, the loss; no momentum.
    elementwise = 60 * (6 * 56 + 56 + 13) + 2 * 2_700_516
    assert found["flops_per_step"] == products + elementwise == 653_590_932
    # Weights and gradients written and read; inputs read; what 112 neurons write, twice.
    assert found["bytes_per_step"] == 4 * (4 * 2_700_516 + 60 * (67_500 + 2 * 112))


def test_windows_leave_out_padding():
    # Of three windows of three places over four numbers and a zero on each side, with stride 1.
    conv = layer_operations(Conv2d(1, 1, 3, 1, bias=False), (1, 4, 4), (1, 4, 4))
    assert conv.forward == conv.weights == conv.inputs == 2 * 10 * 10
    pool = layer_operations(MaxPool2d(3, 2, 1), (4, 8, 8), (4, 4, 4))
    assert pool.forward == 4 * (64 - 16) and pool.inputs == pool.weights == 0
    # A row and a column that no window reaches.
    assert layer_operations(MaxPool2d(2, 2), (1, 5, 5), (1, 2, 2)).forward == 16 - 4
    layers = (Conv2d(1, 2, 3), BatchNorm2d(2), Residual((ReLU(),)), Flatten(), Linear(8, 3))
    # In prediction a batch norm is part of the weights.
    assert prediction_operations(layers, (1, 4, 4)) == 2 * 2 * 9 * 4 + 8 + 8 + 2 * 8 * 3


def test_a_kind_of_layer_without_a_rule_is_refused():
    with pytest.raises(TypeError, match=r"operations of layer 'new' are not known: add them to"):
        layer_operations("new", (3,), (3,))
