"""The rates of a training: the schedules' rules, the warm-up, and what the global batch does to both."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pydantic import ValidationError

from checkouts import environment_python
from transect.domain.errors import BadInput
from transect.planning.parameters import resolve
from transect.training.learning_rates import learning_rates
from transect.training.schedules import SCHEDULES
from transect.training.workloads import Parameters
from warm import warm


def rates_of(schedule="constant", steps=10, rule="none", batch=8, **more):
    parameters = Parameters(
        batch=8, epochs=1, learning_rate=0.5, quality_target=0.5, **({"schedule": schedule} if schedule else {}), **more
    )
    return learning_rates(parameters, rule, batch, steps)


# One of the user's has a file.
NAMES = [name for name in SCHEDULES if name != "function"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 7, 100])
@pytest.mark.parametrize("warmup", [0, 1, 3, 8])
def test_each_schedule_gives_a_finite_rate_for_each_step(name, steps, warmup):
    rates = rates_of({"name": name, "warmup_steps": warmup}, steps)
    assert rates.shape == (steps,)
    assert rates.dtype == np.float64
    assert np.isfinite(rates).all()
    assert (rates > 0).all()
    assert (rates <= 0.5).all()
    grown = min(steps, warmup)
    np.testing.assert_allclose(rates[:grown], 0.5 * np.arange(1, grown + 1) / max(1, warmup), rtol=1e-15)


def test_the_rules_by_hand():
    np.testing.assert_array_equal(rates_of(), np.full(10, 0.5))
    np.testing.assert_allclose(rates_of("cosine", 4), 0.25 * (1 + np.cos(np.pi * np.arange(4) / 4)))
    np.testing.assert_allclose(rates_of({"name": "cosine", "end": 0.2}, 2), [0.5, 0.5 * 0.6])
    np.testing.assert_allclose(rates_of("linear", 4), [0.5, 0.375, 0.25, 0.125])
    # 10 steps: milestones at 1/3, 2/3 and 8/9 of them are passed in steps 4, 7 and 9.
    np.testing.assert_allclose(rates_of("steps"), [*[0.5] * 4, *[0.05] * 3, *[0.005] * 2, 0.0005])
    halves = {"name": "steps", "milestones": ".5 0.75", "factor": 0.5}
    np.testing.assert_allclose(rates_of(halves, 4), [0.5, 0.5, 0.25, 0.125])
    # 0.07 x 100 is above 7 in floating point.
    exact = rates_of({"name": "steps", "milestones": "0.07 .55"}, 100)
    assert [int((exact == rate).sum()) for rate in np.unique(exact)[::-1]] == [7, 48, 45]
    # Behind a warm-up of 2 steps a schedule counts the other 4.
    warm = {"name": "linear", "warmup_steps": 2}
    np.testing.assert_allclose(rates_of(warm, 6), [0.25, 0.5, 0.5, 0.375, 0.25, 0.125])


def test_the_global_batch_scales_what_the_schedule_gives():
    # Scaled: 0.5 x (1, 1.5, 2, 2), for a batch of twice the size after two steps; then times the schedule.
    scaled = rates_of("", 4, "linear", batch=16, warmup_steps=2)
    np.testing.assert_allclose(scaled, [0.5, 0.75, 1.0, 1.0])
    both = rates_of({"name": "linear", "warmup_steps": 2}, 4, "linear", batch=16, warmup_steps=2)
    np.testing.assert_allclose(both, scaled * [0.5, 1.0, 1.0, 0.5])
    # Without that rule the batch, and `warmup_steps` of the scaled rate, do nothing.
    np.testing.assert_array_equal(rates_of("cosine", 4, batch=16, warmup_steps=2), rates_of("cosine", 4))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("cosin", "cosine"),
        ({"name": "cosine", "ends": 0.1}, "option of schedule cosine"),
        ({"name": "cosine", "end": -1}, "a number from 0 on"),
        ({"name": "steps", "milestones": "1/3, 2/3"}, "such as '0.5 0.75'"),
        ({"name": "steps", "milestones": "1.5"}, "such as '0.5 0.75'"),
        ({"name": "steps", "milestones": "1/3 5/3"}, "milestones below 1, found 5/3"),
        ({"name": "one-cycle", "peak": 1.0}, "a peak below 1, found 1"),
        ({"name": "constant", "warmup_steps": 0.5}, "a whole number from 0 on"),
        ({"warmup_steps": 3}, "a mapping of `name` and options"),
        (3, "a mapping of `name` and options"),
    ],
)
def test_a_schedule_that_cannot_be_is_told(given, message):
    with pytest.raises(ValidationError, match=message):
        Parameters(batch=8, epochs=1, learning_rate=0.5, quality_target=0.5, schedule=given)


def test_a_name_and_its_mapping_are_one_schedule():
    both = [
        Parameters(batch=8, epochs=1, learning_rate=0.5, quality_target=0.5, schedule=given)
        for given in ("cosine", {"name": "cosine", "end": 0.0, "warmup_steps": 0})
    ]
    assert both[0] == both[1]
    assert Parameters.model_validate(both[0].model_dump(mode="json")) == both[0]


RATES = """
def rate(step, steps):
    return 1 / (1 + step) if steps == 4 else "none"

def below(step, steps):
    return 0.5 - step
"""


def study_of(folder, schedule):
    folder.mkdir(exist_ok=True)
    (folder / "rates.py").write_text(RATES)
    return resolve("iris-mlp", {"learning_rate": 0.5, "schedule": schedule}, folder / "study.yaml")


def test_a_function_of_the_users_is_a_schedule(tmp_path):
    parameters = study_of(tmp_path, "rates.py:rate")
    assert parameters == study_of(tmp_path, {"name": "function", "file": "rates.py"})
    expected = [0.5, 0.25, 0.5 / 3, 0.125]
    np.testing.assert_allclose(learning_rates(parameters, "none", 16, 4), expected)
    # In the worker the spec is all that is known.
    again = Parameters.model_validate(parameters.model_dump(mode="json"))
    np.testing.assert_allclose(learning_rates(again, "none", 16, 4), expected)
    warm_one = study_of(tmp_path, {"name": "function", "file": "rates.py", "warmup_steps": 2})
    np.testing.assert_allclose(learning_rates(warm_one, "none", 16, 6), [0.25, 0.5, *expected])


def test_what_a_file_of_a_schedule_imports_is_no_input(tmp_path):
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "more.py").write_text("import numpy\nfrom helper import rate\n")
    with pytest.raises(BadInput, match=r"more\.py imports .*helper\.py, whose edits nobody would see"):
        study_of(tmp_path, "more.py:rate")


@pytest.mark.parametrize(
    ("schedule", "steps", "message"),
    [
        ("gone.py:rate", 4, "gone.py: no such file"),
        ({"name": "function"}, 4, "expected FILE.py:NAME, got ':rate'"),
        ("rates.py:rates", 4, "unknown member 'rates': did you mean 'rate'"),
        ("rates.py:rate", 5, "rates.py:rate: called with 0, 5: ValueError"),
        ("rates.py:below", 4, "gives -0.5 for step 1 of 4: expected a number from 0 on"),
    ],
)
def test_a_function_that_gives_no_rate_is_told(tmp_path, schedule, steps, message):
    with pytest.raises(BadInput, match=message):
        learning_rates(study_of(tmp_path, schedule), "none", 16, steps)


TORCH = """
import json, torch
from torch.optim import lr_scheduler as s

def path(steps, make):
    optimiser = torch.optim.SGD([torch.zeros(1)], lr=0.5)
    schedule, rates = make(optimiser), []
    for _ in range(steps):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    return rates

print(json.dumps({
    "cosine": path(23, lambda o: s.CosineAnnealingLR(o, 23)),
    "linear": path(23, lambda o: s.LinearLR(o, 1.0, 0.0, 23)),
    "one-cycle": path(23, lambda o: s.OneCycleLR(o, 0.5, total_steps=23, cycle_momentum=False)),
    "steps": path(23, lambda o: s.MultiStepLR(o, [8, 16, 21])),
}))
"""


@pytest.mark.env
def test_the_schedules_are_those_of_torch(tmp_path_factory):
    python = environment_python("torch", tmp_path_factory.mktemp("environment"))
    run = warm(python).run("-c", TORCH)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    for name in found:
        np.testing.assert_allclose(rates_of(name, 23), found[name], rtol=1e-12, atol=1e-15, err_msg=name)
