"""What cannot be trained is named before a program is started, and nothing is trained."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from train_runs import BATCH, STEPS, Run, parts, state_file, tensors

from transect.domain.errors import BadInput
from transect.runtimes.training_plans import Training


@pytest.fixture
def run(train_steps: Path, tmp_path: Path) -> Run:
    return Run("python", "python", tmp_path / "run", train_steps)


def _state(change: Callable[[dict[str, Any], bytes], tuple[Any, bytes]]) -> Callable[[Run], Any]:
    """Return what gives a run a state whose header or data are changed."""

    def spoil(run: Run) -> None:
        content = state_file(*change(*parts(run.folder / "step" / "state.safetensors")))
        run.arguments["state"] = run.write("given.safetensors", content)

    return spoil


def _entry(**changes: Any) -> Callable[[Run], Any]:
    """Change the entry of one tensor in the header of a state."""

    def change(header: dict[str, Any], data: bytes) -> tuple[Any, bytes]:
        name = _weight(header)
        return header | {name: header[name] | changes}, data

    return _state(change)


def _weight(header: dict[str, Any]) -> str:
    """Return the name of the first weight."""
    return next(name for name in header if name.endswith(".weight"))


def _raw(content: bytes) -> Callable[[Run], Any]:
    """Give a run these bytes as its state."""
    return lambda run: run.arguments.update(state=run.write("given.safetensors", content))


def _twice(header: dict[str, Any], data: bytes) -> tuple[bytes, bytes]:
    """Let a tensor be there again, with the bytes of others: most parsers keep the last one."""
    name, text = _weight(header), json.dumps(header)
    begin, end = header[name]["data_offsets"]
    again = json.dumps(header[name] | {"data_offsets": [0, end - begin]})
    return f'{text[:-1]}, "{name}": {again}}}'.encode(), data


def _overlap(header: dict[str, Any], data: bytes) -> tuple[Any, bytes]:
    """Let all tensors of one size be the first one's bytes."""
    first = header[_weight(header)]
    shared = {k: first if v.get("shape") == first["shape"] else v for k, v in header.items()}
    return shared, data


def _not_a_number(header: dict[str, Any], data: bytes) -> tuple[Any, bytes]:
    begin = header[_weight(header)]["data_offsets"][0]
    return header, data[:begin] + np.float32(np.nan).tobytes() + data[begin + 4 :]


def _at_step(number: int) -> Callable[[Run], Any]:
    """Leave a checkpoint after so many updates."""

    def spoil(run: Run) -> None:
        header, data = parts(run.folder / "step" / "state.safetensors")
        begin, end = header["step"]["data_offsets"]
        run.checkpoint.write_bytes(state_file(header, data[:begin] + number.to_bytes(8, "little") + data[end:]))

    return spoil


def _manifest(change: Callable[[dict[str, Any]], Any]) -> Callable[[Run], Any]:
    return lambda run: run.edit("step/manifest.json", change)


def _tensor(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of the first weight."""
    found: dict[str, Any] = next(x for x in manifest["state"] if x["name"].endswith(".weight"))
    return found


def _data(**changes: Any) -> Callable[[Run], Any]:
    return lambda run: run.edit("data/header.json", lambda header: header["tensors"][0].update(changes))


def _schedule(content: Any) -> Callable[[Run], Any]:
    return lambda run: run.arguments.update(schedule=run.write("schedule.json", content))


def _order(*rows: int) -> Callable[[Run], Any]:
    """Let the last rows be others."""

    def spoil(run: Run) -> None:
        order = np.fromfile(run.folder / "order.bin", "<i8")[: STEPS * BATCH]
        order[-len(rows) :] = rows
        run.write("order.bin", order)

    return spoil


def _arguments(**changes: Any) -> Callable[[Run], Any]:
    return lambda run: run.arguments.update({k: run.folder / v if k in PATHS else v for k, v in changes.items()})


PATHS = ("step", "state", "schedule")
OTHER = "0123456789abcdef" * 4
GIVEN = "given.safetensors"
# Each with a word that the message must have.
FAULTS: dict[str, tuple[Callable[[Run], Any], str]] = {
    "no folder of a step": (_arguments(step="gone"), "manifest.json"),
    "no rows in a batch": (_arguments(batch=0), "batch"),
    "no order": (lambda r: (r.folder / "order.bin").unlink(), "order.bin"),
    "end before the begin": (_arguments(until=-1), "until"),
    "no micro-batch": (_arguments(accumulate=0), "accumulate"),
    "word for a seed": (_arguments(seed="seven"), "seven"),
    "manifest of a later version": (_manifest(lambda m: m.update(version=2)), "manifest.json"),
    "manifest without a state": (_manifest(lambda m: m.pop("state")), "manifest.json"),
    "manifest with a number for a shape": (_manifest(lambda m: _tensor(m).update(shape=7)), "model"),
    "manifest with a huge shape": (_manifest(lambda m: _tensor(m).update(shape=[2**40, 2**40])), "model"),
    "graph that takes less than the manifest says": (
        _manifest(
            lambda m: (
                m["graphs"]["step"]["inputs"].append("other")
                or m["hyper"].append({"name": "other", "dtype": "float64", "default": 1})
            )
        ),
        "other",
    ),
    "graph that is none": (lambda r: r.write("step/step.onnx", b"no model" * 99), "step.onnx"),
    "micro-batches without their graph": (
        lambda r: (_manifest(lambda m: m["graphs"].pop("accumulate"))(r), r.arguments.update(accumulate=2)),
        "accumulate",
    ),
    "no such state": (_arguments(state="gone.safetensors"), "gone.safetensors"),
    "header longer than the file": (_raw((2**40).to_bytes(8, "little") + b"{}"), GIVEN),
    "header that is no JSON": (_raw(state_file(b'{"a": ')), GIVEN),
    "deep header": (_raw(state_file(b'{"a":' * 100_000)), GIVEN),
    "state of another step": (_state(lambda h, d: (h | {"__metadata__": {"step_graph": OTHER}}, d)), OTHER),
    "cut state": (_state(lambda h, d: (h, d[:-1])), GIVEN),
    "state without one tensor": (_state(lambda h, d: ({k: v for k, v in h.items() if k != _weight(h)}, d)), GIVEN),
    "state with one tensor more": (
        _state(lambda h, d: (h | {"more": {"dtype": "F32", "shape": [0], "data_offsets": [len(d), len(d)]}}, d)),
        "more",
    ),
    "tensor twice": (_state(_twice), GIVEN),
    "tensors that overlap": (_state(_overlap), GIVEN),
    "tensor of another type": (_entry(dtype="I32"), "model."),
    "tensor of another shape": (_entry(shape=[3, 256]), "model."),
    "huge shape": (_entry(shape=[2**40, 2**40]), "model."),
    "negative shape": (_entry(shape=[-6, -128]), "model."),
    "offsets beyond the end": (_entry(data_offsets=[0, 2**50]), GIVEN),
    "offsets that run back": (_entry(data_offsets=[800, 8]), GIVEN),
    "number for metadata": (_state(lambda header, data: (header | {"__metadata__": 7}, data)), GIVEN),
    "negative offsets": (_entry(data_offsets=[-8, 8]), GIVEN),
    "number in the state that is none": (_state(_not_a_number), "model."),
    "checkpoint that is cut": (lambda r: r.write("checkpoint.safetensors", b"\x10\0\0\0\0\0\0\0{"), "checkpoint"),
    "checkpoint of a later step": (lambda r: (_at_step(5)(r), r.arguments.update(until=4)), "5"),
    "no data": (lambda r: (r.folder / "data" / "header.json").unlink(), "header.json"),
    "data of another name": (_data(name="z"), "z"),
    "data of another type": (_data(dtype="int32"), "x"),
    "data of another shape": (_data(shape=[60, 4]), "x"),
    "data of other rows": (lambda r: (r.write("data/x.bin", b"\0" * 24 * 39), _data(shape=[39, 6])(r)), "rows"),
    "data cut": (lambda r: r.write("data/x.bin", b"\0" * 12), "x.bin"),
    "order of fewer batches": (lambda r: r.write("order.bin", b"\0" * 8 * 95), "order.bin"),
    "order beyond the data": (_order(0, 40, 1), "40"),
    "order before the data": (_order(-1), "-1"),
    "no schedule": (_arguments(schedule="gone.json"), "gone.json"),
    "unknown hyper-parameter": (_schedule({"rate": 0.1}), "rate"),
    "text for a rate": (_schedule({"lr": "0.1"}), "lr"),
    "rate that is no number": (_schedule('{"lr": NaN}'), "schedule.json"),
    "list of too few rates": (_schedule({"lr": [0.1] * 23}), "23"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_named(run: Run, fault: str) -> None:
    spoil, word = FAULTS[fault]
    spoil(run)
    before = sorted(run.folder.rglob("*")), run.checkpoint.read_bytes() if run.checkpoint.exists() else None
    with pytest.raises(BadInput) as error:
        Training(**run.arguments).plan()
    assert word in str(error.value)
    # Nothing was written.
    after = sorted(run.folder.rglob("*")), run.checkpoint.read_bytes() if run.checkpoint.exists() else None
    assert after == before


def test_an_altered_graph_is_named(run: Run) -> None:
    # A doc string more: it is the same graph in other bytes.
    run.write("step/step.onnx", (run.folder / "step" / "step.onnx").read_bytes() + b"\x32\x01x")
    with pytest.raises(BadInput, match=r"step\.onnx has the sha256"):
        Training(**run.arguments).plan()


DAMAGED = ("step/state.safetensors", "step/manifest.json", "order.bin")
DAMAGE = [f"{name} {seed}" for name in DAMAGED for seed in range(8)]


@pytest.mark.parametrize("damage", DAMAGE)
def test_random_damage_is_an_answer_and_no_crash(run: Run, damage: str) -> None:
    name, generator = damage.split()[0], random.Random(damage)
    whole = (run.folder / name).read_bytes()
    # Where the header is: most of a state is numbers, of which nearly all are good.
    damaged, most = bytearray(whole), min(len(whole), 4000)
    for _ in range(generator.randint(1, 4)):
        damaged[generator.randrange(most)] = generator.randrange(256)
    cut = generator.choice([len(damaged), generator.randrange(len(damaged))])
    run.write(name, bytes(damaged[:cut]))
    try:
        plan = Training(**run.arguments).plan()
    except BadInput as error:
        assert str(error)
    else:
        # Damage may leave a file that is right.
        assert plan.steps == STEPS - int(tensors(run.folder / "step" / "state.safetensors")["step"])
