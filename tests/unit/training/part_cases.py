"""Parts of models by one framework: held to numpy's whole model and to differences of its own outputs.

`python part_cases.py FRAMEWORK CASE...`, in the framework's environment; prints JSON. Few cases, each
of another kind: what is compiled is compiled anew for each part and size of a micro-batch.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from part_steps import RULES, compare, make_plan, part_step

from transect.training.frameworks import FRAMEWORKS, ModelPart

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
    """Train a case as `part_steps` does all of numpy's and torch's."""
    name, cuts, micro_batches, rule, gpipe = case
    step = gpipe_step if gpipe else part_step
    return compare(framework, name, precision, *RULES[rule], cuts, micro_batches, step)


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
