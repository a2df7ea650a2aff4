"""Pipelines, pairs of layers and rows of images on real ranks follow numpy's path in float64."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import parallel_worlds
import pytest
from parallel_cases import cases
from parallel_worlds import MIDDLE, Case, run_world

from transect.training.layers import Flatten, Linear

TOLERANCE = {"fp64": 1e-12, "fp32": 2e-5}


@pytest.fixture(scope="module", params=[1, 2, 3, 4])
def world(request, torch_python: str, tmp_path_factory):
    """The number of ranks, and what each found."""
    folder = tmp_path_factory.mktemp("world")
    return request.param, run_world(torch_python, folder, request.param, cases(request.param))


def off_by(case, ranks: int, found) -> float:
    """Return the largest difference of losses, of those after a restart, of outputs and of weights."""
    layout = case.layout(ranks)
    losses, trainer, _ = case.expected(layout)
    told = [one for one in found if one[f"{case.name}/tells"]]
    # Each replica's ranks tell the same, if they tell.
    assert len(told) % layout.replicas == 0 and told, case.name
    pairs = [
        (np.mean([one[f"{case.name}/loss"] for one in told], axis=0), losses),
        (np.mean([one[f"{case.name}/restarted"] for one in told], axis=0), losses[MIDDLE:][:2]),
    ]
    outputs = trainer.predict(case.batches[0][0])
    # All ranks of the first replica have them: the others have running statistics of their own.
    pairs += [(one[f"{case.name}/outputs"], outputs) for one in found[: layout.model_parts]]
    weights = trainer.weights()
    named = f"{case.name}/weight/"
    assert {key[len(named) :] for key in found[0].files if key.startswith(named)} == set(weights)
    pairs += [(found[0][named + key], array) for key, array in weights.items()]
    return max(float(np.abs(seen - right).max()) for seen, right in pairs)


def test_the_path_is_that_of_one_process(world):
    ranks, found = world
    differences = {case.name: off_by(case, ranks, found) for case in cases(ranks)}
    allowed = {case.name: TOLERANCE[case.precision] for case in cases(ranks)}
    wrong = {name: off for name, off in differences.items() if not off <= allowed[name]}
    assert wrong == {}


def test_the_parts_make_up_the_step(world):
    ranks, found = world
    for case in cases(ranks):
        for one in found:
            compute, communication, under_way, bubble, step = one[f"{case.name}/parts"].T
            assert (compute > 0).all() and (compute + communication <= step).all()
            assert ((communication > 0) == (ranks > 1)).all() or case.options.get("parts") == 1
            if case.strategy == "torch-pipeline":
                # Torch does not tell how long a message is under way.
                assert np.isnan(under_way).all() and (bubble <= communication).all()
                assert ((bubble > 0) == (ranks > 1)).all()
            else:
                assert (under_way == communication).all() and (bubble == 0).all()


def test_who_has_no_last_stage_tells_no_loss(world):
    ranks, found = world
    for case in cases(ranks):
        for one in found:
            told = bool(one[f"{case.name}/tells"])
            assert all(math.isfinite(loss) == told for loss in one[f"{case.name}/loss"])


def test_a_rank_says_what_it_computed(world):
    ranks, found = world
    for case in cases(ranks):
        layout = case.layout(ranks)
        said = [json.loads(str(one[f"{case.name}/details"])) for one in found]
        places = [divmod(rank, layout.model_parts) for rank in range(ranks)]
        assert [(one["replica"], one["part"]) for one in said] == places
        if case.strategy == "torch-pipeline":
            layers = [one["layers"] for one in said[: layout.model_parts]]
            spans = layers if isinstance(layers[0][0], int) else [s for one in layers for s in one]
            each = sorted(layer for first, last in spans for layer in range(first, last))
            assert each == list(range(len(case.layers)))


def test_what_a_layer_raises_is_not_told_as_shapes(torch_python, tmp_path, monkeypatch):
    """Torch makes a RuntimeError of it, by which memory that ends would be none that ended."""
    ends = """strategy.start(trainer)
    def ends(module, inputs):
        raise MemoryError("no more for this layer")
    trainer.parts[0].trainer.model.register_forward_pre_hook(ends)
"""
    spoilt = parallel_worlds.RANK.replace("strategy.start(trainer)\n", ends)
    monkeypatch.setattr(parallel_worlds, "RANK", spoilt)
    case = Case(name="ends", strategy="torch-pipeline", layers=(Flatten(), Linear(4, 3)), sample=(1, 2, 2))
    with pytest.raises(AssertionError) as said:
        run_world(torch_python, tmp_path, 1, [case])
    assert re.findall(r"\w+Error: .*$", str(said.value), re.MULTILINE)[-1] == ("MemoryError: no more for this layer")
