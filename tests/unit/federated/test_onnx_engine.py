"""Clients' turns by programs of the portable step: the real programs, beside numpy in float64."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federated_steps import MODELS, WORKLOAD, rows_of, weights_of
from federations import a_cell

from checkouts import environment_python
from transect.domain.axes.federate import FederateCell
from transect.domain.errors import BadInput, MissingDependency, TransectError, Unsupported, WrongResult
from transect.federated.draws import rows_of_turns
from transect.federated.engines import ENGINES, Task, Turn, Turned
from transect.federated.flat import arrays_of, flat_of, trained_part
from transect.runtimes import RUNTIMES
from transect.training.frameworks import ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.module_model import ModuleModel
from transect.training.optimisers import OWN_OPTIMISER
from warm import warm

pytestmark = pytest.mark.env
ENGINE = ENGINES.get("onnx")
STEPS, BATCH, CLIENT_ROWS = 6, 5, 20
# Of weights and losses in float32, relatively: 1.6e-7 was seen.
TOLERANCE = 1e-6

MakeTask = Callable[..., Task]


@pytest.fixture(scope="module")
def steps(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `iris/step`, `normed/step` and those with a pull: federated_steps.py."""
    folder = tmp_path_factory.mktemp("federated")
    warm(torch_python).check(Path(__file__).with_name("federated_steps.py"), folder)
    return folder


@pytest.fixture
def make(steps: Path, tmp_path: Path) -> MakeTask:
    """Return what makes a task of a model and a text of runtimes; further arguments are axes of its cell."""

    def _make(name: str, runtime: str, **axes: Any) -> Task:
        cell = FederateCell(
            workload=WORKLOAD, aggregation="fedavg", partition="iid", clients=3, cohort=3, rounds=1,
            local_steps=STEPS, batch=BATCH, engine="onnx", runtime=runtime, **axes,
        )  # fmt: skip
        programs = {each: {"python": _python(each, tmp_path), "wrap": [], "variables": {}} for each in cell.runtimes}
        (model, parameters), (x, y) = MODELS[name], rows_of(name)
        return Task(
            cell=cell, model=model, parameters=parameters, weights=weights_of(name), x=x, y=y,
            folders={"step": steps / name}, out=tmp_path / "out", programs=programs,
        )  # fmt: skip

    return _make


def _python(runtime: str, folder: Path) -> str:
    return environment_python(RUNTIMES.get(runtime).environment, folder)


def three(task: Task) -> list[Turn]:
    """Return a turn of each client, with weights and rows of its own."""
    given = flat_of(task.model, task.weights)
    rows = rows_of_turns(3, np.arange(3), np.full(3, CLIENT_ROWS), STEPS, BATCH)
    return [
        Turn(
            client=client,
            number=4 + client,
            given=given * np.float32(1 + client / 10),
            rows=client * CLIENT_ROWS + rows[client],
            seeds=np.zeros(STEPS, np.int64),
        )
        for client in range(3)
    ]


def exact(task: Task, turn: Turn) -> tuple[np.ndarray, float]:
    """Return the weights and the mean loss of a turn, of numpy in float64."""
    weights = arrays_of(task.model, turn.given)
    plan = ModelPlan(
        model=task.model, parameters=task.parameters, weights=weights, batch=BATCH, precision="fp64", device="cpu", threads=1
    )  # fmt: skip
    trainer, losses = NumpyTrainer(plan), []
    anchor, trained = turn.given if turn.anchor is None else turn.anchor, trained_part(task.model)
    for rows in turn.rows:
        losses.append(trainer.forward_backward(*trainer.batch(task.x[rows], task.y[rows])))
        trainer.flat_gradient += turn.mu * (trainer.flat_weights - anchor[trained])
        trainer.update(task.parameters.learning_rate)
    return flat_of(task.model, trainer.weights()), float(np.mean(losses))


def computed(task: Task, turns: list[Turn] | None = None) -> Turned:
    """Return what turns came to, in one piece; nothing of them is left behind."""
    with ENGINE.session(task) as session:
        pieces = list(session.turns(three(task) if turns is None else turns))
    assert list(task.out.iterdir()) == []
    return Turned(
        weights=np.concatenate([piece.weights for piece in pieces]),
        losses=np.concatenate([piece.losses for piece in pieces]),
    )


@pytest.mark.parametrize("name", MODELS)
def test_turns_are_those_of_float64(make: MakeTask, name: str) -> None:
    """Running statistics too, as each is a weight; those of `iris` are trained with momentum, all begin at rest."""
    task = make(name, "python>c")
    found = computed(task)
    assert found.weights.dtype == np.float32
    for turn, weights, loss in zip(three(task), found.weights, found.losses, strict=True):
        right, mean = exact(task, turn)
        assert np.linalg.norm(weights - right) <= TOLERANCE * np.linalg.norm(right)
        assert loss == pytest.approx(mean, rel=TOLERANCE)


def pulled(turns: list[Turn]) -> list[Turn]:
    """Each with a pull of its own, to an anchor that is not the model that it is given."""
    return [replace(turn, mu=0.4 * turn.number, anchor=turn.given * np.float32(0.5)) for turn in turns]


@pytest.mark.parametrize("name", MODELS)
def test_a_pull_is_that_of_float64(make: MakeTask, steps: Path, name: str) -> None:
    task = replace(make(name, "python>c"), folders={"step": steps / f"{name}-pulled"})
    turns = pulled(three(task))
    # Two turns of one client may have the same number.
    found = computed(task, [*turns, *three(task)])
    for turn, weights in zip([*turns, *three(task)], found.weights, strict=True):
        right, _ = exact(task, turn)
        assert np.linalg.norm(weights - right) <= TOLERANCE * np.linalg.norm(right)
    far = [np.linalg.norm(with_ - without) for with_, without in zip(found.weights[:3], found.weights[3:], strict=True)]
    assert min(far) > 0.01


@pytest.mark.parametrize("name", MODELS)
def test_without_a_pull_it_is_the_plain_step_in_every_bit(make: MakeTask, steps: Path, name: str) -> None:
    task = make(name, "c")
    found = computed(replace(task, folders={"step": steps / f"{name}-pulled"}))
    assert found.weights.tobytes() == computed(task).weights.tobytes()


def test_what_a_step_has_no_input_for_is_refused(make: MakeTask, steps: Path) -> None:
    task = make("iris", "c")
    with pytest.raises(BadInput, match=r"a turn has mu 1\.6, and the step neither: expected of a method no more"):
        computed(task, pulled(three(task)))
    turn = replace(three(task)[0], correction=three(task)[0].given)
    with pytest.raises(BadInput, match="a turn has mu 0 and a correction, and the step mu: expected of a method"):
        computed(replace(task, folders={"step": steps / "iris-pulled"}), [turn])


def test_no_bit_depends_on_language_or_order_or_how_many_run_at_once(make: MakeTask) -> None:
    alone = computed(make("iris", "python"))
    task = make("iris", "c", threads=2)
    found = computed(task, three(task)[::-1])
    assert (found.weights[::-1].tobytes(), found.losses[::-1].tobytes()) == (
        alone.weights.tobytes(),
        alone.losses.tobytes(),
    )


def _spoilt(task: Task, runtime: str, **changes: Any) -> Task:
    return replace(task, programs={**task.programs, runtime: {**task.programs[runtime], **changes}})


def _refusal(task: Task, kind: type[TransectError] = TransectError) -> str:
    with pytest.raises(TransectError) as error:
        computed(task)
    assert type(error.value) is kind
    assert not (task.out / "turns").exists()
    return str(error.value)


def test_a_program_that_crashes_is_told_with_its_client_and_what_it_said(make: MakeTask) -> None:
    wrap = ["sh", "-c", "for line in 1 2 3 4 5 6 7; do echo $line; done; echo no memory for it >&2; exit 7"]
    told = _refusal(_spoilt(make("iris", "python>c"), "c", wrap=wrap)).splitlines()
    assert told == [
        "turn 5 (client 1, c): the runner ended with exit code 7 without a readable record",
        *("4", "5", "6", "7", "no memory for it"),
    ]


def test_a_program_that_is_not_there_is_told_with_its_client(make: MakeTask, tmp_path: Path) -> None:
    told = _refusal(_spoilt(make("iris", "python>c"), "c", python=str(tmp_path / "bin" / "python")), MissingDependency)
    assert re.fullmatch(r"turn 5 \(client 1, c\): /.*/bin/transect-\S+: No such file or directory", told), told


def test_a_rate_that_is_too_high_is_told_with_its_client(make: MakeTask) -> None:
    task = make("iris", "c")
    task = replace(task, parameters=task.parameters.model_copy(update={"learning_rate": 1e30}))
    assert _refusal(task, WrongResult).startswith("turn 4 (client 0, c): diverged: ")


def test_what_a_runtime_lacks_is_told_with_its_client(make: MakeTask) -> None:
    told = _refusal(make("iris", "ort-training"), Unsupported)
    assert told.startswith("turn 4 (client 0, ort-training): momentum: the operator SGDOptimizerV2 of ONNX Runtime")


def test_a_step_of_another_model_is_refused(make: MakeTask, steps: Path) -> None:
    task = make("iris", "c")
    told = _refusal(replace(task, folders={"step": steps / "normed"}), BadInput)
    assert "normed/step: expected a step of the workload's model, 'model.0.bias' is in one of the two alone" in told


def test_weights_that_are_no_numbers_are_told_with_their_client(make: MakeTask) -> None:
    task = make("iris", "c")
    first, *_ = three(task)
    told = "turn 4 (client 0, c): .*: 'model.0.weight' holds a number that is not finite"
    with pytest.raises(BadInput, match=told.replace("(", r"\(").replace(")", r"\)")):
        computed(task, [replace(first, given=first.given * np.float32("nan"))])


def test_what_it_cannot_train_is_told() -> None:
    model, parameters = MODELS["iris"]
    cell = a_cell(engine="onnx", framework=None, runtime="c")
    assert ENGINE.builds(cell, model, parameters) is None
    assert ENGINE.builds(cell.changed(precision="fp64"), model, parameters) == "an exported step has fp32, not fp64"
    told = ENGINE.builds(cell.changed(method="scaffold"), model, parameters)
    assert told == "a step of scaffold has a correction of its gradients, for which an exported step has no input"
    pulling = cell.changed(method="fedprox")
    assert ENGINE.builds(pulling, model, parameters) is None
    told = ENGINE.builds(pulling.changed(runtime="c>torch-eager"), model, parameters)
    assert told == "torch-eager does not run the exported step itself, which alone has the pull of fedprox"
    own = parameters.model_copy(update={"optimiser": OWN_OPTIMISER})
    assert "not by what a function of the user's makes" in str(ENGINE.builds(cell, model, own))
    module = ModuleModel(file=Path("my_model.py"), name="Net", options={})
    assert "torch scores a module of torch" in str(ENGINE.builds(cell, module, parameters))
