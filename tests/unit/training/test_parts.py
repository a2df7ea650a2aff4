"""Parts of a model train as the whole one does: loss, gradients, updates, running statistics."""

from __future__ import annotations

import pytest

from transect.training.encoder_model import TextEncoder
from transect.training.frameworks import ModelPart
from transect.training.layered import LayeredModel
from transect.training.layers import Conv2d, Flatten, Linear, ReLU, Residual, initial_weights
from transect.training.parts import boundary_shapes, layer_count, no_parts, part_weights, parts_of
from transect.training.workloads import WORKLOADS, model_of

MODEL = LayeredModel(
    (Conv2d(1, 2, 3, 1), Residual((Conv2d(2, 2, 3, 1), ReLU())), ReLU(), Flatten(), Linear(8, 3)), (1, 2, 2)
)


def test_parts_begin_at_the_cuts():
    parts = parts_of(MODEL, (1, 4))
    assert parts == [ModelPart(0, 1, 5), ModelPart(1, 4, 5), ModelPart(4, 5, 5)]
    assert [part.begins for part in parts] == [True, False, False]
    assert [part.ends for part in parts] == [False, False, True]
    names = [[weight.name for weight in part_weights(MODEL, part)] for part in parts]
    assert names == [["0.weight", "0.bias"], ["1.body.0.weight", "1.body.0.bias"], ["4.weight", "4.bias"]]
    assert [name for part in names for name in part] == list(initial_weights(MODEL.layers, 0))
    assert boundary_shapes(MODEL) == [(1, 2, 2), (2, 2, 2), (2, 2, 2), (2, 2, 2), (8,), (3,)]
    assert layer_count(MODEL) == 5


def test_a_model_that_is_no_list_of_layers_has_no_parts():
    assert no_parts(MODEL) is None
    encoder = model_of(WORKLOADS.get("tickets-transformer"))
    assert isinstance(encoder, TextEncoder)
    assert no_parts(encoder) == "it cuts lists of layers, and a transformer is not one"
    with pytest.raises(TypeError, match="TextEncoder is not a list of layers"):
        layer_count(encoder)
