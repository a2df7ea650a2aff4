"""Parts of models by one framework: held to numpy's whole model and to differences of its own outputs.

`python part_cases.py FRAMEWORK CASE...`, in the framework's environment; prints JSON. Few cases, each
of another kind: what is compiled is compiled anew for each part and size of a micro-batch.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from part_steps import BATCH, MODELS, RULES, apart, make_plan, part_step, whole_step

from transect.training.frameworks import FRAMEWORKS, ModelPart
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layout import Layout
from transect.training.parts import parts_of

# Model, cuts, micro-batches of 7 samples, index of the rule, whether all go forwards before one goes back.
# Parts without weights begin the model, stand in its middle, and end in flattened images.
CASES: list[tuple[str, tuple[int, ...], int, int, bool]] = [
    ("mlp", (1, 2, 3), 3, 1, False),
    ("net", (3, 5), 3, 0, True),
    ("net", (), 7, 0, False),
]


def gpipe_step(parts: list[Any], x: np.ndarray, y: np.ndarray, micro: list[slice]) -> float:
    """Do all forward passes, then all backward passes from the last micro-batch to the first."""
    batches = [part.batch(x, y) for part in parts]
    loss = 0.0
    for part in parts:
        part.begin_step()
    for i, one in enumerate(micro):
        passed: Any = batches[0][0][one]
        for part in parts[:-1]:
            passed = part.forward(i, passed)
        weight = len(y[one]) / len(y)
        loss += weight * parts[-1].loss(i, passed, batches[-1][1][one], weight)
    for i in reversed(range(len(micro))):
        g = None
        for part in reversed(parts):
            g = part.backward(i, g)
    return loss


def train(framework: str, precision: str, case: tuple[str, tuple[int, ...], int, int, bool]) -> dict[str, float]:
    """Train four steps, the last one after going on from the state before the third."""
    name, cuts, micro_batches, rule, gpipe = case
    plan = make_plan(name, precision, *RULES[rule])
    whole = NumpyTrainer(make_plan(name, "fp64", *RULES[rule]))
    makes: Any = FRAMEWORKS.get(framework)
    parts = [makes.part_trainer(plan, part) for part in parts_of(plan.model, cuts)]
    generator = np.random.default_rng(0)
    micro = Layout(1, len(parts), micro_batches).micro(BATCH)
    off = dict.fromkeys(("loss", "gradient", "weights", "predict"), 0.0)
    state = None
    for number, rate in enumerate((0.05, 0.1, 0.02, 0.02)):
        if number == 2:
            state = whole.state()
        if number == 3 and state is not None:
            for one in (whole, *parts):
                one.resume(state)
        x, y = generator.standard_normal((BATCH, *MODELS[name][0])), generator.integers(0, 3, BATCH)
        losses = whole_step(whole, x, y, micro), (gpipe_step if gpipe else part_step)(parts, x, y, micro)
        off["loss"] = max(off["loss"], abs(losses[0] - losses[1]))
        flats = [part.gradient().copy() for part in parts]
        # Layouts differ from framework to framework, and so do the places of numbers.
        differences = np.sort(np.concatenate(flats)) - np.sort(whole.gradient())
        off["gradient"] = max(off["gradient"], float(np.abs(differences).max()))
        for part, flat in zip(parts, flats, strict=True):
            part.set_gradient(flat)
            part.update(rate)
            part.finish_step()
        whole.update(rate)
        found = {key: array for part in parts for key, array in part.weights().items()}
        off["weights"] = max(off["weights"], apart(whole.weights(), found))
    x = passed = generator.standard_normal((5, *MODELS[name][0]))
    for part in parts:
        passed = part.predict(passed)
    off["predict"] = float(np.abs(passed - whole.predict(x)).max())
    return off


def slopes(framework: str) -> float:
    """Return how far gradients of a part in the middle are from differences of its own outputs.

    The part maps images to images; (g, f(x + t d) - f(x - t d)) / 2 t is (gradient, d), for weights too.
    """
    plan = make_plan("net", "fp64", *RULES[1])
    makes: Any = FRAMEWORKS.get(framework)
    part = makes.part_trainer(plan, ModelPart(4, 6, 8))
    generator = np.random.default_rng(1)
    start = part.weights()
    x, g = (generator.standard_normal(shape) for shape in ((5, 4, 4, 4), (5, 6, 2, 2)))
    along = generator.standard_normal(x.shape)
    bent = {n: generator.standard_normal(a.shape) * (not n.endswith(("_mean", "_var"))) for n, a in start.items()}

    def value(by: float, moved: float) -> float:
        part.load({name: start[name] + moved * bent[name] for name in start})
        part.begin_step()
        return float((g * part.forward(0, x + by * along)).sum())

    value(0, 0)
    inner = part.backward(0, g)
    step = 1e-6
    found = (value(step, 0) - value(-step, 0)) / (2 * step)
    off = abs(found - float((inner * along).sum())) / abs(found)
    # The update is the gradient's: the rule is a plain one.
    value(0, 0)
    part.backward(0, g)
    part.update(1.0)
    after = part.weights()
    expected = sum(float(((start[n] - after[n]) * bent[n]).sum()) for n in start)
    found = (value(0, step) - value(0, -step)) / (2 * step)
    return max(off, abs(found - expected) / abs(found))


def main(framework: str, *cases: str) -> None:
    """Print what the cases give: a number in fp64, `fp32`, `amp-bf16`, or `slopes`."""
    found: dict[str, Any] = {}
    for case in cases:
        if case == "slopes":
            found[case] = slopes(framework)
        elif case.isdigit():
            found[case] = train(framework, "fp64", CASES[int(case)])
        else:
            found[case] = train(framework, case, CASES[1 if case == "fp32" else 0])
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
