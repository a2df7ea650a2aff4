"""Level `train`: every runner trains the same, and goes on with what any other has left."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from train_runs import BATCH, STEPS, TRAINERS, Run, parts, runner_python, state_file, tensors

from transect.portable_step.manifest import read_manifest
from transect.runtimes import RUNTIMES
from transect.runtimes.plan_file import Role, write_plan
from transect.runtimes.programs import PLAN, RESULT, said_lines
from transect.runtimes.training import keep_checkpoint
from transect.runtimes.training_plans import BEGIN, Training

# Of float32 against PyTorch in float64, over all steps.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}

Make = Callable[..., Run]

every_trainer = pytest.mark.parametrize("trainer", TRAINERS, indirect=True)
# The browser computes with its own kernels, and reads, keeps and checks with what Node.js has.
browser_at_times = pytest.mark.parametrize(
    "trainer",
    [*(name for name in TRAINERS if name != "browser"), pytest.param("browser", marks=pytest.mark.exhaustive)],
    indirect=True,
)


@pytest.fixture
def make(trainer: tuple[str, str], train_steps: Path, tmp_path: Path) -> Make:
    """Return what makes one more folder to run in."""
    numbers = iter(range(99))
    return lambda: Run(*trainer, tmp_path / str(next(numbers)), train_steps)


@pytest.fixture
def run(make: Make) -> Iterator[Run]:
    return make()


def _expected(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run.made / "expected.json").read_text())
    return found


@every_trainer
def test_losses_are_those_of_pytorch(run: Run) -> None:
    record = run.good()
    np.testing.assert_allclose(record["losses"], _expected(run)["plain"], **TOLERANCE)
    assert len(record["metrics"]["accuracy"]) == STEPS
    assert all(0 <= value <= 1 for value in record["metrics"]["accuracy"])


@every_trainer
def test_record_says_how_it_was(run: Run) -> None:
    record = run.good(checkpoint_every=10, fresh=True)
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


@browser_at_times
def test_schedule_has_numbers_and_lists(run: Run) -> None:
    rates = _expected(run)["rates"]
    schedule = run.write("schedule.json", {"lr": rates, "momentum": 0.9})
    record = run.good(schedule=schedule)
    np.testing.assert_allclose(record["losses"], _expected(run)["schedule"], **TOLERANCE)


@every_trainer
def test_micro_batches_are_a_step(run: Run) -> None:
    record = run.good(accumulate=3)
    np.testing.assert_allclose(record["losses"], _expected(run)["accumulate"], **TOLERANCE)
    state = tensors(run.checkpoint)
    assert state["step"] == STEPS
    assert not any(array.any() for name, array in state.items() if name.startswith("accumulated"))


@browser_at_times
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


@every_trainer
def test_begun_training_goes_on_as_if_unbroken(make: Make) -> None:
    whole, broken = make(), make()
    unbroken = whole.good(accumulate=2, fresh=True)
    first = broken.good(accumulate=2, until=9)
    second = broken.good(until=STEPS)
    assert (first["first_step"], second["first_step"]) == (0, 9)
    assert first["losses"] + second["losses"] == unbroken["losses"]
    assert broken.checkpoint.read_bytes() == whole.checkpoint.read_bytes()


@browser_at_times
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


# Masks of dropout follow from the seed in every language.
@pytest.mark.parametrize(("same_kernels", "step"), [(True, "step"), (False, "step"), (True, "dropout")])
def test_relay_through_all_runners_is_one_training(
    same_kernels: bool, step: str, train_steps: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each runner goes on with the checkpoint of the one before."""
    runs, folder = [], tmp_path_factory.mktemp("environments")
    for name in [name for name in TRAINERS if TRAINERS[name] or not same_kernels]:
        try:
            runs.append(Run(name, runner_python(name, folder), tmp_path / name, train_steps))
        except pytest.skip.Exception:
            continue
    if len(runs) < 2:
        pytest.skip("a relay takes two runners")
    whole = Run(runs[0].runtime, runs[0].python, tmp_path / "whole", train_steps)
    for run in (whole, *runs):
        run.arguments |= {"step": run.folder / step, "seed": 3}
    unbroken = whole.good()
    losses, before = [], None
    for number, run in enumerate(runs, 1):
        record = run.good(until=STEPS * number // len(runs), state=before)
        losses += record["losses"]
        before = run.checkpoint
    assert before is not None
    if same_kernels:
        assert losses == unbroken["losses"]
        assert before.read_bytes() == whole.checkpoint.read_bytes()
        return
    np.testing.assert_allclose(losses, unbroken["losses"], **TOLERANCE)
    found = tensors(before)
    for key, array in tensors(whole.checkpoint).items():
        np.testing.assert_allclose(found[key], array, **TOLERANCE)


@browser_at_times
def test_masks_follow_from_the_seed_alone(make: Make) -> None:
    losses, states = [], []
    for seed, stops in ((0, [STEPS]), (7, [STEPS]), (7, [9, STEPS])):
        run, found = make(), []
        run.arguments["step"] = run.folder / "dropout"
        for until in stops:
            found += run.good(seed=seed, until=until)["losses"]
        losses.append(found)
        states.append(run.checkpoint.read_bytes())
    assert losses[0] != losses[1] == losses[2]
    assert states[0] != states[1] == states[2]


def _wait_for_another(out: Path, process: subprocess.Popen[bytes]) -> None:
    """Return when three checkpoints were announced, while the process still runs."""
    while len(said_lines(out)) < 3:
        try:
            code = process.wait(timeout=0.01)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"ended with {code} before its next checkpoint")


@every_trainer
def test_killed_training_goes_on_as_if_unbroken(make: Make) -> None:
    # So many steps that none of the runs ends by itself.
    many = 200_000
    order = np.random.default_rng(1).integers(0, 40, many * BATCH).astype("<i8")
    killed, whole = make(), make()
    killed.arguments |= {"until": many, "checkpoint_every": 1}
    killed.write("order.bin", order)
    manifest = read_manifest(killed.folder / "step")
    for _ in range(2):
        process = killed.start()
        _wait_for_another(killed.out, process)
        process.kill()
        process.wait()
        assert keep_checkpoint(killed.out, manifest, killed.checkpoint) is None
    step = int(tensors(killed.checkpoint)["step"])
    assert 5 <= step < many
    assert killed.good(until=step + 5)["first_step"] == step
    whole.write("order.bin", order)
    whole.good(until=step + 5)
    assert killed.checkpoint.read_bytes() == whole.checkpoint.read_bytes()


def test_a_block_that_was_being_written_is_not_kept(train_steps: Path, tmp_path: Path) -> None:
    run = Run("python", "python", tmp_path, train_steps)
    manifest = read_manifest(run.folder / "step")
    plan = Training(**run.arguments).plan()
    write_plan(run.out / PLAN, plan)
    block = bytearray((run.out / BEGIN).read_bytes())
    counter = next(entry.offset for entry in plan.of(Role.STATE) if entry.name == "step")
    for slot, step in ((0, 7), (1, 6)):
        block[counter : counter + 8] = step.to_bytes(8, "little")
        (run.out / f"state-{slot}.bin").write_bytes(block)
    # The seventh was written, and not announced; then a line that was cut.
    lines = [{"checkpoint": 5, "slot": 0, "ns": 1}, {"checkpoint": 6, "slot": 1, "ns": 1}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.out / RESULT).write_text(text + '{"checkpoint": 7, "sl')
    assert keep_checkpoint(run.out, manifest, run.checkpoint) is None
    assert tensors(run.checkpoint)["step"] == 6
    (run.out / "state-1.bin").write_bytes(block[:-1])
    run.checkpoint.unlink()
    assert keep_checkpoint(run.out, manifest, run.checkpoint) is None
    assert not run.checkpoint.exists()


@browser_at_times
def test_loss_that_is_not_finite_ends_it(make: Make) -> None:
    run, short = make(), make()
    before = short.good(until=5)
    # In float32 the rate is infinite: the step after it has no loss.
    schedule = {"lr": [0.05] * 7 + [1e300] * (STEPS - 7)}
    run.write("schedule.json", schedule)
    code, record, stderr = run.train(schedule=run.folder / "schedule.json", checkpoint_every=5)
    assert (code, record["status"], record["cause"]) == (0, "failed", "diverged"), stderr
    assert "step 8" in record["message"]
    # An error of the data rather than of the rate, in other words of the framework.
    assert "class" in record["message"]
    assert len(record["losses"]) == len(record["run_ns"]) == len(record["metrics"]["accuracy"]) == 8
    assert record["losses"][:5] == before["losses"]
    assert np.isfinite(record["losses"]).all()
    assert [entry["step"] for entry in record["checkpoints"]] == [5]
    assert run.checkpoint.read_bytes() == short.checkpoint.read_bytes()


@browser_at_times
def test_state_that_is_not_finite_is_not_kept(run: Run) -> None:
    run.write("schedule.json", {"lr": [0.05] * 7 + [1e300]})
    code, record, stderr = run.train(schedule=run.folder / "schedule.json", checkpoint_every=1, until=8)
    assert (code, record["status"], record["cause"]) == (0, "failed", "diverged"), stderr
    assert "step 7" in record["message"]
    assert [entry["step"] for entry in record["checkpoints"]] == [1, 2, 3, 4, 5, 6, 7]
    assert len(record["losses"]) == len(record["bind_ns"]) == 7
    state = tensors(run.checkpoint)
    assert state["step"] == 7
    assert all(np.isfinite(array).all() for array in state.values())


@pytest.mark.parametrize("trainer", TRAINERS, indirect=True)
def test_checkpoint_before_a_state_that_is_not_finite_stays_where_the_loss_is_finite(run: Run) -> None:
    # The batch norm's running variance becomes infinite, and no loss of the steps to come.
    run.write("schedule.json", {"lr": [0.05] * 7 + [5e18] + [0.0] * (STEPS - 8)})
    code, record, stderr = run.train(schedule=run.folder / "schedule.json", checkpoint_every=2)
    assert (code, record["status"], record["cause"]) == (0, "failed", "diverged"), stderr
    assert "by step 11 'model.layers.1.running_var'" in record["message"]
    assert [entry["step"] for entry in record["checkpoints"]] == [2, 4, 6, 8, 10]
    assert len(record["losses"]) == 11
    assert tensors(run.checkpoint)["step"] == 10


def _without_limit(run: Run) -> Path:
    """Return a Chromium whose files may grow: its memory is files too, but not on that disk."""
    real = shutil.which(RUNTIMES.get("browser").tools()[0])
    path = run.write("chromium", f'#!/bin/sh\nulimit -S -f unlimited\nexec {real} "$@"\n')
    path.chmod(0o755)
    return path


@every_trainer
def test_full_disk_leaves_the_checkpoint_of_before(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    if run.runtime == "browser":
        monkeypatch.setenv("TRANSECT_CHROMIUM", str(_without_limit(run)))
    run.good(until=5)
    before = run.checkpoint.read_bytes()
    # Enough for a record, and for no checkpoint.
    assert len(before) > 12_000
    code, record, stderr = run.train(until=STEPS, largest_file=8192)
    assert (code, record["status"], record["cause"]) == (1, "failed", "crash"), stderr
    words = record["message"].lower()
    assert "file too large" in words or "efbig" in words, record
    assert "state-" in record["message"] and len(stderr.splitlines()) == 1, stderr
    assert run.checkpoint.read_bytes() == before
    assert run.good()["first_step"] == 5


@browser_at_times
def test_any_valid_safetensors_file_is_read(make: Make) -> None:
    whole, reordered = make(), make()
    whole.good(until=5)
    header, data = parts(reordered.folder / "step" / "state.safetensors")
    metadata = header.pop("__metadata__") | {"written": "elsewhere"}
    turned, raw = {}, b""
    for name in sorted(header, reverse=True):
        begin, end = header[name]["data_offsets"]
        offsets = [len(raw), len(raw) + end - begin]
        turned[name] = {"data_offsets": offsets, "shape": header[name]["shape"], "dtype": header[name]["dtype"]}
        raw += data[begin:end]
    text = json.dumps(turned | {"__metadata__": metadata}, indent=3)
    state = reordered.write("state", state_file(text.encode() + b"   ", raw))
    reordered.good(until=5, state=state)
    assert reordered.checkpoint.read_bytes() == whole.checkpoint.read_bytes()
