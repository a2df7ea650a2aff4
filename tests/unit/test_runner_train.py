"""Mode `train`: every runner trains the same, and goes on with what any other has left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from train_runs import BATCH, STEPS, Run, parts, state_file, tensors

from checkouts import environment_python
from transect.domain.cell import Cell
from transect.runtimes import RUNTIMES

# Runners with mode `train`; a new one is a line here. True: it computes with the kernels of the
# wheel's library or its like, so that the same steps are the same bytes.
TRAINERS = {
    "python": True,
    "python-iobinding": True,
    "c": True,
    "cpp": True,
    "rust": True,
    "go": True,
    "javascript": True,
    "browser": False,
    "java": True,
}
# Of float32 against PyTorch in float64, over all steps.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}

Make = Callable[..., Run]


@pytest.fixture(scope="session")
def made(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `step`, `data`, `order.bin` and `expected.json`: see train_steps.py."""
    folder = tmp_path_factory.mktemp("train")
    helper = Path(__file__).with_name("train_steps.py")
    subprocess.run([torch_python, str(helper), str(folder)], check=True)
    return folder


def _python(name: str, folder: Path) -> str:
    """Return the interpreter of a runner's environment; skips where it cannot be."""
    runtime = RUNTIMES.get(name)
    cell = Cell.of(stage="infer", workload="x", runtime=name, provider="cpu", batch=1)
    if reason := runtime.supports(cell):
        pytest.skip(reason)
    return environment_python(runtime.environment, folder)


@pytest.fixture(scope="module", params=TRAINERS)
def trainer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str]:
    name: str = request.param
    return name, _python(name, tmp_path_factory.mktemp("environment"))


@pytest.fixture
def make(trainer: tuple[str, str], made: Path, tmp_path: Path) -> Make:
    """Return what makes one more folder to run in."""
    numbers = iter(range(99))
    return lambda: Run(*trainer, tmp_path / str(next(numbers)), made)


@pytest.fixture
def run(make: Make) -> Iterator[Run]:
    return make()


def _expected(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run.made / "expected.json").read_text())
    return found


def test_losses_are_those_of_pytorch(run: Run) -> None:
    record = run.good()
    np.testing.assert_allclose(record["losses"], _expected(run)["plain"], **TOLERANCE)
    assert len(record["metrics"]["accuracy"]) == STEPS
    assert all(0 <= value <= 1 for value in record["metrics"]["accuracy"])


def test_record_says_how_it_was(run: Run) -> None:
    record = run.good(checkpoint_every=10)
    manifest = json.loads((run.folder / "step" / "manifest.json").read_text())
    assert (record["runner"], record["mode"]) == (run.runtime, "train")
    assert record["runtime_version"] == "1.29.0"
    assert (record["first_step"], record["step_graph"]) == (0, manifest["step_graph"])
    assert Path(record["state"]) == run.checkpoint
    assert [entry["step"] for entry in record["checkpoints"]] == [10, 20, STEPS]
    assert all(entry["ns"] > 0 for entry in record["checkpoints"])
    for part in ("gather", "bind", "run", "read"):
        times = record[f"{part}_ns"]
        assert len(times) == STEPS
        if part in record["run_includes"]:
            assert times == [0] * STEPS, part
        else:
            # A part may be shorter than the step of a coarse clock.
            coarse = record.get("clock_resolution_ns", 1) > 1000
            assert all(time >= 0 if coarse else time > 0 for time in times), part
    assert record["session_ns"] > 0
    assert record["peak_memory_bytes"] > 1 << 20
    assert record["session_options"] == {"intra_op_num_threads": 1}
    assert record["provider_used"] == "cpu"


def test_schedule_has_numbers_and_lists(run: Run) -> None:
    rates = _expected(run)["rates"]
    schedule = run.write("schedule.json", {"lr": rates, "momentum": 0.9})
    record = run.good(schedule=schedule)
    np.testing.assert_allclose(record["losses"], _expected(run)["schedule"], **TOLERANCE)


def test_micro_batches_are_a_step(run: Run) -> None:
    record = run.good(accumulate=3)
    np.testing.assert_allclose(record["losses"], _expected(run)["accumulate"], **TOLERANCE)
    state = tensors(run.checkpoint)
    assert state["step"] == STEPS
    assert not any(array.any() for name, array in state.items() if name.startswith("accumulated."))


def test_checkpoint_has_the_one_form(run: Run) -> None:
    run.good()
    manifest = json.loads((run.folder / "step" / "manifest.json").read_text())
    raw = run.checkpoint.read_bytes()
    header, data = parts(run.checkpoint)
    assert [*header] == ["__metadata__", *(tensor["name"] for tensor in manifest["state"])]
    assert header["__metadata__"] == {"step_graph": manifest["step_graph"]}
    place = 0
    for tensor in manifest["state"]:
        entry = header[tensor["name"]]
        assert [*entry] == ["dtype", "shape", "data_offsets"]
        assert (entry["shape"], entry["data_offsets"][0]) == (tensor["shape"], place)
        place = entry["data_offsets"][1]
    assert place == len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    assert raw[8 : len(raw) - len(data)] == text + b" " * (-len(text) % 8)


def test_begun_training_goes_on_as_if_unbroken(make: Make) -> None:
    whole, broken = make(), make()
    unbroken = whole.good(accumulate=2)
    first = broken.good(accumulate=2, until=9)
    second = broken.good(until=STEPS)
    assert (first["first_step"], second["first_step"]) == (0, 9)
    assert first["losses"] + second["losses"] == unbroken["losses"]
    assert broken.checkpoint.read_bytes() == whole.checkpoint.read_bytes()


def test_state_is_begun_with_where_there_is_no_checkpoint(make: Make) -> None:
    whole, broken = make(), make()
    whole.good()
    broken.good(until=9)
    state = broken.checkpoint.rename(broken.folder / "at-9.safetensors")
    record = broken.good(until=STEPS, state=state)
    assert record["first_step"] == 9
    assert broken.checkpoint.read_bytes() == whole.checkpoint.read_bytes()
    # The checkpoint that is there now counts, and nothing is left to do.
    record = broken.good()
    assert (record["first_step"], record["losses"], record["run_ns"]) == (STEPS, [], [])
    assert broken.checkpoint.read_bytes() == whole.checkpoint.read_bytes()


def test_relay_through_all_runners_is_one_training(
    made: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each runner goes on with the checkpoint of the one before."""
    runs, folder = [], tmp_path_factory.mktemp("environments")
    for name in TRAINERS:
        try:
            runs.append(Run(name, _python(name, folder), tmp_path / name, made))
        except pytest.skip.Exception:
            continue
    if len(runs) < 2:
        pytest.skip("a relay takes two runners")
    whole = Run(runs[0].runtime, runs[0].python, tmp_path / "whole", made)
    unbroken = whole.good()
    losses, before = [], None
    for number, run in enumerate(runs, 1):
        record = run.good(until=STEPS * number // len(runs), state=before)
        losses += record["losses"]
        before = run.checkpoint
    assert before is not None
    if all(TRAINERS[run.runtime] for run in runs):
        assert losses == unbroken["losses"]
        assert before.read_bytes() == whole.checkpoint.read_bytes()
        return
    np.testing.assert_allclose(losses, unbroken["losses"], **TOLERANCE)
    found = tensors(before)
    for key, array in tensors(whole.checkpoint).items():
        np.testing.assert_allclose(found[key], array, **TOLERANCE)


def test_checkpoint_is_the_same_in_every_language(run: Run, made: Path, tmp_path: Path) -> None:
    if not TRAINERS[run.runtime]:
        pytest.skip(f"{run.runtime} computes with kernels that were built apart from the others'")
    first = next(iter(TRAINERS))
    other = Run(first, _python(first, tmp_path), tmp_path / "first", made)
    assert run.good(accumulate=3)["losses"] == other.good(accumulate=3)["losses"]
    assert run.checkpoint.read_bytes() == other.checkpoint.read_bytes()


def _wait_for_another(checkpoint: Path, process: subprocess.Popen[bytes]) -> None:
    """Return when the file is another one than it was, while the process still runs."""
    before = checkpoint.stat().st_ino if checkpoint.exists() else None
    while not checkpoint.exists() or checkpoint.stat().st_ino == before:
        try:
            code = process.wait(timeout=0.01)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"ended with {code} before its next checkpoint")


def test_killed_training_goes_on_as_if_unbroken(make: Make) -> None:
    # So many steps that none of the runs ends by itself.
    many = 200_000
    order = np.random.default_rng(1).integers(0, 40, many * BATCH).astype("<i8")
    killed, whole = make(), make()
    killed.arguments |= {"until": many, "checkpoint-every": 1}
    killed.write("order.bin", order)
    for _ in range(3):
        process = killed.start()
        _wait_for_another(killed.checkpoint, process)
        process.kill()
        process.wait()
    step = int(tensors(killed.checkpoint)["step"])
    assert 3 <= step < many
    assert killed.good(until=step + 5)["first_step"] == step
    whole.write("order.bin", order)
    whole.good(until=step + 5)
    assert killed.checkpoint.read_bytes() == whole.checkpoint.read_bytes()


def test_loss_that_is_not_finite_ends_it(make: Make) -> None:
    run, short = make(), make()
    before = short.good(until=5)
    # In float32 the rate is infinite: the step after it has no loss.
    schedule = {"lr": [0.05] * 7 + [1e300] * (STEPS - 7)}
    run.write("schedule.json", schedule)
    code, record, stderr = run.train(schedule=run.folder / "schedule.json", checkpoint_every=5)
    assert (code, record["status"], record["cause"]) == (1, "failed", "diverged"), stderr
    assert "step 8" in record["message"]
    assert "step 8" in stderr
    assert len(record["losses"]) == len(record["run_ns"]) == len(record["metrics"]["accuracy"]) == 8
    assert record["losses"][:5] == before["losses"]
    assert np.isfinite(record["losses"]).all()
    assert [entry["step"] for entry in record["checkpoints"]] == [5]
    assert run.checkpoint.read_bytes() == short.checkpoint.read_bytes()


def test_state_that_is_not_finite_is_not_kept(run: Run) -> None:
    run.write("schedule.json", {"lr": [0.05] * 7 + [1e300]})
    code, record, stderr = run.train(
        schedule=run.folder / "schedule.json", checkpoint_every=1, until=8
    )
    assert (code, record["status"], record["cause"]) == (1, "failed", "diverged"), stderr
    assert "step 7" in record["message"]
    assert [entry["step"] for entry in record["checkpoints"]] == [1, 2, 3, 4, 5, 6, 7]
    assert len(record["losses"]) == len(record["bind_ns"]) == 7
    state = tensors(run.checkpoint)
    assert state["step"] == 7
    assert all(np.isfinite(array).all() for array in state.values())


def _without_limit(run: Run) -> Path:
    """Return a Chromium whose files may grow: its memory is files too, but not on that disk."""
    real = shutil.which(RUNTIMES.get("browser").tools()[0])
    path = run.write("chromium", f'#!/bin/sh\nulimit -S -f unlimited\nexec {real} "$@"\n')
    path.chmod(0o755)
    return path


def test_full_disk_leaves_the_checkpoint_of_before(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSECT_CHROMIUM", str(_without_limit(run)))
    run.good(until=5)
    before = run.checkpoint.read_bytes()
    files = sorted(os.listdir(run.folder))
    # Enough for a record, and for no checkpoint.
    assert len(before) > 12_000
    code, record, stderr = run.train(until=STEPS, largest_file=8192)
    assert (code, record["status"], record["cause"]) == (1, "failed", "crash"), stderr
    words = record["message"].lower()
    assert "file too large" in words or "efbig" in words, record
    assert run.checkpoint.read_bytes() == before
    assert sorted(os.listdir(run.folder)) == files
    assert run.good()["first_step"] == 5


def test_any_valid_safetensors_file_is_read(make: Make) -> None:
    whole, other = make(), make()
    whole.good(until=5)
    header, data = parts(other.folder / "step" / "state.safetensors")
    metadata = header.pop("__metadata__") | {"written": "elsewhere"}
    turned, raw = {}, b""
    for name in sorted(header, reverse=True):
        begin, end = header[name]["data_offsets"]
        offsets = [len(raw), len(raw) + end - begin]
        turned[name] = {"data_offsets": offsets, "shape": header[name]["shape"],
                        "dtype": header[name]["dtype"]}  # fmt: skip
        raw += data[begin:end]
    text = json.dumps(turned | {"__metadata__": metadata}, indent=3)
    state = other.write("state", state_file(text.encode() + b"   ", raw))
    other.good(until=5, state=state)
    assert other.checkpoint.read_bytes() == whole.checkpoint.read_bytes()


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
    """Return the name of the first parameter."""
    return next(name for name in header if name.startswith("model."))


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
    shared = {
        k: first if v.get("shape") == first["shape"] else v for k, v in header.items()
    }  # fmt: skip
    return shared, data


def _not_a_number(header: dict[str, Any], data: bytes) -> tuple[Any, bytes]:
    begin = header[_weight(header)]["data_offsets"][0]
    return header, data[:begin] + np.float32(np.nan).tobytes() + data[begin + 4 :]


def _manifest(change: Callable[[dict[str, Any]], Any]) -> Callable[[Run], Any]:
    return lambda run: run.edit("step/manifest.json", change)


def _data(**changes: Any) -> Callable[[Run], Any]:
    return lambda run: run.edit("data/header.json", lambda told: told["tensors"][0].update(changes))


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
    return lambda run: run.arguments.update({k.replace("_", "-"): v for k, v in changes.items()})


OTHER = "0123456789abcdef" * 4
GIVEN = "given.safetensors"
# Each with a word that the message must have.
FAULTS: dict[str, tuple[Callable[[Run], Any], str]] = {
    "no step": (_arguments(step=None), "step"),
    "no folder of a step": (_arguments(step="gone"), "manifest.json"),
    "no rows in a batch": (_arguments(batch=0), "batch"),
    "no batch": (_arguments(batch=None), "batch"),
    "no order": (_arguments(order=None), "order"),
    "no end": (_arguments(until=None), "until"),
    "end before the begin": (_arguments(until=-1), "until"),
    "no checkpoint": (_arguments(checkpoint=None), "checkpoint"),
    "half a checkpoint": (_arguments(checkpoint_every=0.5), "checkpoint-every"),
    "no micro-batch": (_arguments(accumulate=0), "accumulate"),
    "word for a seed": (_arguments(seed="seven"), "seven"),
    "unknown provider": (_arguments(provider="quantum"), "quantum"),
    "manifest that is none": (lambda r: r.write("step/manifest.json", "[" * 99), "manifest.json"),
    "manifest of a later version": (_manifest(lambda m: m.update(version=2)), "manifest.json"),
    "manifest of another format": (_manifest(lambda m: m.update(format="x")), "manifest.json"),
    "manifest without a state": (_manifest(lambda m: m.pop("state")), "manifest.json"),
    "manifest without a graph": (_manifest(lambda m: m.pop("graphs")), "manifest.json"),
    "manifest of texts": (_manifest(lambda m: m.update(state="x")), "manifest.json"),
    "manifest with a huge shape": (
        _manifest(lambda m: m["state"][1].update(shape=[2**40, 2**40])), "model",
    ),
    "manifest with a negative shape": (
        _manifest(lambda m: m["state"][1].update(shape=[-1, 4])), "manifest.json",
    ),
    "graph that takes what nothing names": (
        _manifest(lambda m: m["graphs"]["step"]["inputs"].append("nothing")), "nothing",
    ),
    "graph that takes less than the manifest says": (
        _manifest(lambda m: m["graphs"]["step"]["inputs"].append("accumulated.other")
                  or m["state"].append(m["state"][1] | {"name": "accumulated.other", "next": None})),
        "other",
    ),
    "no graph": (lambda r: (r.folder / "step" / "step.onnx").unlink(), "step.onnx"),
    "graph that is none": (lambda r: r.write("step/step.onnx", b"no model" * 99), "step.onnx"),
    "micro-batches without their graph": (
        lambda r: (_manifest(lambda m: m["graphs"].pop("accumulate"))(r),
                   r.arguments.update(accumulate=2)),
        "accumulate",
    ),
    "no such state": (_arguments(state="gone.safetensors"), "gone.safetensors"),
    "empty state": (_raw(b""), GIVEN),
    "state of seven bytes": (_raw(b"\0" * 7), GIVEN),
    "state that is only a length": (_raw(b"\xff" * 8), GIVEN),
    "header longer than the file": (_raw((2**40).to_bytes(8, "little") + b"{}"), GIVEN),
    "header of nothing": (_raw(b"\0" * 8), GIVEN),
    "header that is no JSON": (_raw(state_file(b'{"a": ')), GIVEN),
    "header that is a list": (_raw(state_file([1])), GIVEN),
    "deep header": (_raw(state_file(b'{"a":' * 100_000)), GIVEN),
    "header that is no UTF-8": (_raw(state_file(b'{"\xff": 1}')), GIVEN),
    "no metadata": (
        _state(lambda h, d: ({k: v for k, v in h.items() if k != "__metadata__"}, d)), GIVEN,
    ),
    "metadata of a list": (_state(lambda h, d: (h | {"__metadata__": [1]}, d)), GIVEN),
    "state of another step": (
        _state(lambda h, d: (h | {"__metadata__": {"step_graph": OTHER}}, d)), OTHER,
    ),
    "cut state": (_state(lambda h, d: (h, d[:-1])), GIVEN),
    "state with more behind it": (_state(lambda h, d: (h, d + b"\0")), GIVEN),
    "state without one tensor": (
        _state(lambda h, d: ({k: v for k, v in h.items() if k != _weight(h)}, d)), GIVEN,
    ),
    "state with one tensor more": (
        _state(lambda h, d: (
            h | {"more": {"dtype": "F32", "shape": [0], "data_offsets": [len(d), len(d)]}}, d,
        )),
        "more",
    ),
    "tensor twice": (_state(_twice), GIVEN),
    "tensors that overlap": (_state(_overlap), GIVEN),
    "tensor of another type": (_entry(dtype="I32"), "model."),
    "tensor of an unknown type": (_entry(dtype="F31"), "model."),
    "tensor of another shape": (_entry(shape=[3, 256]), "model."),
    "huge shape": (_entry(shape=[2**40, 2**40]), "model."),
    "shape beyond 64 bits": (_entry(shape=[2**70]), "model."),
    "negative shape": (_entry(shape=[-6, -128]), "model."),
    "shape of texts": (_entry(shape=["6", 128]), "model."),
    "no shape": (_entry(shape=None), "model."),
    "offsets beyond the end": (_entry(data_offsets=[0, 2**50]), GIVEN),
    "offsets beyond 64 bits": (_entry(data_offsets=[2**70, 2**71]), GIVEN),
    "offsets that run back": (_entry(data_offsets=[800, 8]), GIVEN),
    "negative offsets": (_entry(data_offsets=[-8, 8]), GIVEN),
    "three offsets": (_entry(data_offsets=[0, 4, 8]), GIVEN),
    "offsets of fractions": (_entry(data_offsets=[8.5, 3080.5]), GIVEN),
    "entry that is no object": (_state(lambda h, d: (h | {_weight(h): 7}, d)), GIVEN),
    "number in the state that is none": (_state(_not_a_number), "model."),
    "checkpoint that is cut": (
        lambda r: r.write("checkpoint.safetensors", b"\x10\0\0\0\0\0\0\0{"), "checkpoint",
    ),
    "checkpoint of a later step": (lambda r: (r.good(until=5), r.arguments.update(until=4)), "5"),
    "no data": (lambda r: (r.folder / "data" / "header.json").unlink(), "header.json"),
    "data of another name": (_data(name="z"), "z"),
    "data of another type": (_data(dtype="int32"), "x"),
    "data of another shape": (_data(shape=[60, 4]), "x"),
    "data of other rows": (
        lambda r: (r.write("data/x.bin", b"\0" * 24 * 39), _data(shape=[39, 6])(r)), "rows",
    ),
    "huge data": (_data(shape=[2**40, 2**40]), "x"),
    "data cut": (lambda r: r.write("data/x.bin", b"\0" * 12), "x.bin"),
    "data missing": (
        lambda r: r.edit("data/header.json", lambda t: t["tensors"].pop()), "header.json",
    ),
    "no file of the order": (_arguments(order="gone.bin"), "gone.bin"),
    "order of fewer batches": (lambda r: r.write("order.bin", b"\0" * 8 * 95), "order.bin"),
    "order that is cut": (lambda r: r.write("order.bin", b"\0" * (8 * 96 + 4)), "order.bin"),
    "order beyond the data": (_order(0, 40, 1), "40"),
    "order before the data": (_order(-1), "-1"),
    "no schedule": (_arguments(schedule="gone.json"), "gone.json"),
    "schedule that is a list": (_schedule([0.1]), "schedule.json"),
    "unknown hyper-parameter": (_schedule({"rate": 0.1}), "rate"),
    "text for a rate": (_schedule({"lr": "0.1"}), "lr"),
    "flag for a rate": (_schedule({"lr": True}), "lr"),
    "text in a list of rates": (_schedule({"lr": [0.1] * 23 + ["0.1"]}), "lr"),
    "rate that is no number": (_schedule('{"lr": NaN}'), "schedule.json"),
    "rate beyond all numbers": (_schedule('{"lr": 1e999}'), "schedule.json"),
    "list of too few rates": (_schedule({"lr": [0.1] * 23}), "23"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_named(run: Run, fault: str) -> None:
    spoil, word = FAULTS[fault]
    spoil(run)
    checkpoint = run.checkpoint if run.arguments["checkpoint"] else None
    before = checkpoint.read_bytes() if checkpoint and checkpoint.exists() else None
    code, record, stderr = run.train()
    assert (code, record.get("cause")) == (2, "bad-input"), (record, stderr)
    assert word in record["message"], record["message"]
    assert word in stderr
    assert record["runner"] == run.runtime
    # Nothing was trained, and nothing written.
    after = checkpoint.read_bytes() if checkpoint and checkpoint.exists() else None
    assert after == before
