"""Cells that are compared take turns: who waits costs the others nothing, and no end of one harms another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from cell_jobs import Noisy, OneLine, make_job
from factories import infer_cell
from transect.domain.errors import Interruption
from transect.domain.owner import SESSION, Owner
from transect.domain.pairs import Pair
from transect.domain.record import Cause, Record
from transect.engine import heat as heat_module
from transect.engine import heats, run_block, run_cell
from transect.engine.attempts import Attempt
from transect.engine.heats import Patience, in_heats, run_together
from transect.engine.job import Job, Result
from transect.engine.payload import DiskFull
from transect.engine.run_cell import run_job
from transect.engine.seat import Seat
from transect.engine.turns import Turns
from transect.launch.processes import Outcome, marked
from transect.measure.turns import TURNS_VARIABLE

pytestmark = pytest.mark.env


@pytest.fixture(autouse=True)
def no_turns_afterwards():
    """The driver's environment names the heat to its cells until the next cell begins; here other tests follow."""
    yield
    os.environ.pop(TURNS_VARIABLE, None)


# A payload that takes turns: what it does before, in a step and after it are the test's.
PAYLOAD = """
import os, signal, sys, time
sys.path.insert(0, {src!r})
from transect.measure.turns import Turns
def note(word):
    with open({journal!r}, "a") as file:
        file.write({name!r} + " " + word + chr(10))
def pid_of(name):
    lines = [line.split() for line in open({journal!r})]
    return int(next(words[2] for words in lines if words[:2] == [name, "started"]))
{first}
turns, slept = Turns(), 0.0
note(f"started {{os.getpid()}}")
{before}
turns.begin()
for step in range({steps}):
    {step}
    {said}
    if turns.step():
        used = time.process_time()
        {wait}
        slept += time.process_time() - used
turns.end()
note(f"ended {{slept}}")
{after}
"""
SPIN = "used = time.process_time()\n    while time.process_time() < used + 0.002: pass"
USUAL: Any = object()


class Payloads(OneLine):
    """Runs a payload for each runtime, by its name."""

    def __init__(self, folder: Path) -> None:
        super().__init__(measures=True)
        self.journal = folder / "journal"
        self.codes: dict[str, str] = {}
        self.plans: dict[str, Turns | None] = {}
        self.took: dict[str, dict[str, Any] | None] = {}

    def add(self, name: str, *, steps: int = 106, plan: Turns | None = USUAL, code: str = "", **parts: str) -> None:
        filled = {"first": "", "before": "", "step": SPIN, "said": "note('step')", "wait": "turns.wait()", "after": ""}
        filled |= {"name": name, "steps": str(steps), **parts}
        src = str(Path(heats.__file__).parents[2])
        self.codes[name] = code or PAYLOAD.format(src=src, journal=str(self.journal), **filled)
        self.plans[name] = Turns(connections=1, iterations=steps, warmup=5) if plan is USUAL else plan

    def prepare(self, job: Job) -> Any:
        self.code = self.codes[str(job.cell.get("runtime"))]
        return super().prepare(job)

    def turns(self, job: Job) -> Turns | None:
        return self.plans[str(job.cell.get("runtime"))]

    def collect(self, job: Job, outcome: Outcome) -> Result:
        result = super().collect(job, outcome)
        self.took[str(job.cell.get("runtime"))] = job.turns
        result.details |= {"turns": job.turns} if job.turns is not None else {}
        return result


@dataclass
class Bench:
    """Jobs of payloads, and how they are run."""

    folder: Path
    stage: Payloads
    limits: dict[str, Any] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)

    def jobs(self) -> list[Job]:
        return [make_job(self.folder, infer_cell(name, 0), cell_limits=self.limits) for name in self.stage.plans]

    def run(self, job: Job, seat: Seat | None) -> Record:
        self.ran.append(str(job.cell.get("runtime")))
        return run_job(job, 1, Noisy(), seat)

    def together(self) -> dict[str, Record]:
        return {str(record.cell.get("runtime")): record for record in run_together(self.jobs(), self.run, Patience())}

    def journal(self) -> list[list[str]]:
        return [line.split() for line in self.stage.journal.read_text().splitlines()]

    def blocks(self) -> list[tuple[str, int]]:
        """Return who made how many steps before another one did."""
        found: list[tuple[str, int]] = []
        for name, word, *_ in self.journal():
            if word == "step" and found and found[-1][0] == name:
                found[-1] = name, found[-1][1] + 1
            elif word == "step":
                found.append((name, 1))
        return found

    def steps(self, name: str) -> int:
        return self.journal().count([name, "step"])


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    stage = Payloads(tmp_path)
    for module in (heats, run_cell):
        monkeypatch.setattr(module.RUNNERS, "get", lambda _: stage)
    # Few turns are enough here.
    monkeypatch.setattr(heat_module, "FEWEST", 4)
    monkeypatch.setattr(heat_module, "MOST", 4)
    return Bench(tmp_path, stage)


def left(folder: Path) -> list[int]:
    return [process.pid for job in folder.glob("s/*/*") for process in marked("TRANSECT_CELL", str(job))]


def test_two_take_turns_forwards_and_backwards_and_end_one_after_another(bench: Bench) -> None:
    for name in ("c", "go"):
        bench.stage.add(name)
    records = bench.together()
    assert [record.status for record in records.values()] == ["ok", "ok"]
    # The warm-up in three turns, four of 25 steps, and the last step with what comes after it.
    turns = [("c", 25), ("go", 50), ("c", 50), ("go", 50), ("c", 26), ("go", 1)]
    assert bench.blocks() == [("c", 3), ("go", 3), *[("c", 1), ("go", 1)] * 2, *turns]
    words = [(name, word) for name, word, *_ in bench.journal() if word != "step"]
    assert words == [("c", "started"), ("go", "started"), ("c", "ended"), ("go", "ended")]
    c, go = (bench.stage.took[name] for name in ("c", "go"))
    assert c is not None and go is not None and c["heat"] == go["heat"]
    assert c["counts"] == go["counts"] == [3, 1, 1, 25, 25, 25, 25] and c["quiet"][:3] == [False] * 3


def test_waiting_takes_no_processor_time_and_none_of_the_cells_own(bench: Bench) -> None:
    bench.stage.add("c", steps=406)
    bench.stage.add("go", steps=406)
    bench.limits = {"seconds": 60}
    records = bench.together()
    slept = {name: float(more[0]) for name, word, *more in bench.journal() if word == "ended"}
    # The other one computes for 0.8 s meanwhile.
    assert max(slept.values()) < 0.08
    for record in records.values():
        whole = record.details["payload_s"] + record.details["waited_s"]
        assert record.details["waited_s"] > 0.8 and record.details["payload_s"] < whole - 0.8


def test_a_limit_counts_own_turns_and_what_hangs_in_its_turn_stops_nobody(bench: Bench) -> None:
    bench.stage.add("c", step=f"{SPIN}\n    if step == 40: time.sleep(600)")
    bench.stage.add("go")
    bench.limits = {"seconds": 4}
    # The other one waits for those 4 s, and computes itself.
    records = bench.together()
    assert (records["c"].status, records["c"].cause) == ("failed", Cause.TIMEOUT)
    assert records["go"].status == "ok" and bench.steps("go") == 106
    assert records["go"].details["payload_s"] < 4 < records["go"].details["waited_s"] + 1


@pytest.mark.parametrize("step", [2, 40])
def test_one_that_is_killed_while_it_waits_leaves_the_others_whole(bench: Bench, step: int) -> None:
    bench.stage.add("c")
    bench.stage.add("go", step=f"{SPIN}\n    if step == {step}: os.kill(pid_of('c'), 9)")
    bench.stage.add("rust")
    records = bench.together()
    # Memory of a heat may have run out, so that is no verdict on the one: it ran again, alone.
    assert bench.ran == ["c", "go", "rust", "c"] and records["c"].status == "ok" and bench.stage.took["c"] is None
    for name in ("go", "rust"):
        assert records[name].status == "ok" and bench.steps(name) == 106
        assert bench.stage.took[name]["counts"] == [3, 1, 1, 25, 25, 25, 25]  # type: ignore[index]


def test_one_that_is_killed_alone_too_or_over_its_own_limit_has_failed(bench: Bench) -> None:
    bench.stage.add("c", step="os.kill(os.getpid(), 9)")
    bench.stage.add("go", before="held = bytearray(400 * 2**20); held[::4096] = bytes(102400); time.sleep(60)")
    bench.stage.add("rust")
    bench.limits = {"memory_mb": 200}
    records = bench.together()
    assert (records["c"].cause, records["go"].cause) == (Cause.KILLED, Cause.OUT_OF_MEMORY)
    assert bench.ran == ["c", "go", "rust", "c"] and records["rust"].status == "ok"


@pytest.mark.parametrize(
    "parts", [{"before": "raise SystemExit(7)"}, {"step": "raise SystemExit(7)"}, {"after": "raise SystemExit(7)"}]
)
def test_one_that_dies_in_its_own_turn_leaves_the_others_whole(bench: Bench, parts: dict[str, str]) -> None:
    bench.stage.add("c", **parts)
    bench.stage.add("go")
    records = bench.together()
    assert records["c"].status == "failed" and "exit code 7" in records["c"].message
    assert records["go"].status == "ok" and bench.steps("go") == 106 and left(bench.folder) == []


def test_one_that_never_connects_runs_to_its_end_before_the_next_begins(bench: Bench) -> None:
    bench.stage.add("c", code=f"open({str(bench.stage.journal)!r}, 'a').write('c alone\\n')")
    bench.stage.add("go")
    # Whose stage takes no turns is told of none.
    bench.stage.add("rust", plan=None, before="assert not turns.taken")
    records = bench.together()
    assert {record.status for record in records.values()} == {"ok"}
    assert bench.journal()[0] == ["c", "alone"] and bench.stage.took["c"] is bench.stage.took["rust"] is None
    assert "waited_s" not in records["rust"].details
    assert [name for name, word, *_ in bench.journal() if word == "ended"] == ["go", "rust"]


# Works a third of the time, whoever has the turn.
NEVER_RESTS = """
import threading
def work():
    while True:
        time.sleep(0.002)
        end = time.thread_time() + 0.001
        while time.thread_time() < end: pass
beside = threading.Thread(target=work, daemon=True)
"""


BEGINS = [{"before": "beside.start()"}, {"step": f"{SPIN}\n    if not step: beside.start()"}]


@pytest.mark.parametrize("parts", BEGINS)
def test_one_whose_threads_never_rest_is_stopped_as_it_waits(bench: Bench, parts: dict[str, str]) -> None:
    wait = "; ".join(("began = time.monotonic()", "turns.wait()", "used = time.process_time() - used"))
    wait += "; note(f'waited {used} {time.monotonic() - began}')"
    bench.stage.add("go")
    bench.stage.add("c", first=NEVER_RESTS, wait=wait, said="", **parts)
    bench.stage.add("rust")
    records = bench.together()
    assert {record.status for record in records.values()} == {"ok"}
    c, go, rust = (bench.stage.took[name] for name in ("c", "go", "rust"))
    assert c is not None and go is not None and rust is not None
    assert c["heat"] == go["heat"] == rust["heat"] and c["counts"] == go["counts"] == rust["counts"]
    # It computes a third of the time, and does not while others have the turn.
    waits = [(float(used), float(took)) for name, word, used, took in (x for x in bench.journal() if x[1] == "waited")]
    late = waits[-3:]
    assert sum(used for used, _ in late) < 0.15 * sum(took for _, took in late)


STOPS = """
import os, signal, sys
from transect.engine.seat import Seat
from transect.engine.turns import Turns
seat = Seat("heat", Turns(connections=1), ("127.0.0.1", 1))
seat.started([int(sys.argv[1])], "nobody")
seat.find_processes()
seat.stop_while_waiting()
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
seat.resume()
seat.pause()
seat.call_off()
seat.close()
"""


@pytest.mark.parametrize("end", ["killed", "called off"])
def test_nobody_is_left_stopped(end: str) -> None:
    with subprocess.Popen(["sleep", "600"]) as child:
        try:
            engine = subprocess.run([sys.executable, "-c", STOPS, str(child.pid), end], check=False)
            assert engine.returncode == (-signal.SIGKILL if end == "killed" else 0)
            end = time.monotonic() + 60
            while (stopped := psutil.Process(child.pid).status() == psutil.STATUS_STOPPED) and time.monotonic() < end:
                time.sleep(0.01)
            assert not stopped and child.poll() is None
        finally:
            child.kill()


@pytest.mark.parametrize("parts", BEGINS)
def test_one_that_never_rests_and_cannot_be_stopped_disturbs_nobody_as_it_waits(
    bench: Bench, parts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Seat, "_signal", lambda *_: None)
    bench.stage.add("go")
    bench.stage.add("c", first=NEVER_RESTS, **parts)
    bench.stage.add("rust")
    records = bench.together()
    assert {record.status for record in records.values()} == {"ok"} and bench.stage.took["c"] is None
    # It has ended before the others' turns.
    ended = bench.journal().index(next(line for line in bench.journal() if line[:2] == ["c", "ended"]))
    assert bench.journal()[:ended].count(["go", "step"]) <= 5
    for name in ("go", "rust"):
        assert bench.stage.took[name]["counts"] == [3, 1, 1, 25, 25, 25, 25]  # type: ignore[index]


def test_calls_of_one_that_never_rests_and_cannot_be_stopped_are_measured_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Seat, "_signal", lambda *_: None)
    for name, before in (("go", ""), ("c", "beside.start()")):
        plan, stop = Turns(connections=1, seconds=0.02), "if not turns.wait(): break"
        bench.stage.add(name, steps=10**6, plan=plan, first=NEVER_RESTS, before=before, said="", wait=stop)
    assert {record.status for record in bench.together().values()} == {"ok"}
    c, go = (bench.stage.took[name] for name in ("c", "go"))
    assert c is not None and go is not None and c["heat"] != go["heat"]
    assert min(len(c["counts"]) - c["trials"], len(go["counts"]) - go["trials"]) >= 4


def test_a_payload_with_too_few_iterations_for_turns_runs_to_its_end_alone(bench: Bench) -> None:
    for name in ("c", "go"):
        bench.stage.add(name, steps=9)
    bench.together()
    assert bench.blocks() == [("c", 9), ("go", 9)] and bench.stage.took == {"c": None, "go": None}


def test_calls_are_asked_for_until_enough_turns_were_quiet(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    call = "\n    ".join(("end = time.perf_counter() + 0.0002", "while time.perf_counter() < end: pass"))
    stop = "if not turns.wait(): break"
    for name in ("c", "go"):
        bench.stage.add(name, steps=10**6, plan=Turns(connections=1, seconds=0.02), step=call, said="", wait=stop)
    verdicts = iter([False, False, *[True] * 100])
    monkeypatch.setattr(heat_module.Window, "end", lambda *_: [next(verdicts)])
    monkeypatch.setattr(heat_module.Window, "judge", lambda _: [])
    assert {record.status for record in bench.together().values()} == {"ok"}
    took = [bench.stage.took[name] for name in ("c", "go")]
    for turns in took:
        assert turns is not None
        # Tried by tens, marked as no turns that count; then one lap more, as one was disturbed.
        tried = turns["trials"]
        assert tried >= 2 and turns["quiet"] == [*[False] * (tried + 1), *[True] * 4]
        assert (
            turns["counts"][:2] == [1, 1]
            and len(set(turns["counts"][tried:])) == 1
            and len(turns["counts"]) == tried + 5
        )


def test_all_connections_of_a_payload_make_its_turn(bench: Bench) -> None:
    # Two processes, as two ranks: one is slower in each step.
    bench.stage.add(
        "c",
        plan=Turns(connections=2, iterations=106, warmup=5),
        first="forked = os.fork()",
        step=f"{SPIN}\n    if not forked: time.sleep(0.001)",
        said="note('step') if not forked else None",
        after="os.waitpid(forked, 0) if forked else os._exit(0)",
    )
    bench.stage.add("go")
    records = bench.together()
    assert [record.status for record in records.values()] == ["ok", "ok"]
    assert bench.blocks()[-4:] == [("c", 50), ("go", 50), ("c", 26), ("go", 1)]


def test_an_interruption_ends_all_payloads_and_leaves_their_cells_to_run_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("c", "go"):
        bench.stage.add(name)
    turn, turns = heat_module.Heat._turn, Counter[str]()

    def interrupted(self: Any, *given: Any, **more: Any) -> None:
        turns["all"] += 1
        if turns["all"] == 9:
            raise Interruption(143)
        turn(self, *given, **more)

    monkeypatch.setattr(heat_module.Heat, "_turn", interrupted)
    with pytest.raises(Interruption):
        bench.together()
    assert left(bench.folder) == []
    for job in bench.jobs():
        assert not (job.folder / "record.json").exists() and (job.folder / "attempt.json").exists()


def test_a_full_disk_of_one_ends_the_others(bench: Bench) -> None:
    bench.stage.add("c")
    bench.stage.add("go", step=f"{SPIN}\n    if step == 40: raise SystemExit(1)")

    def run(job: Job, seat: Seat | None) -> Record:
        record = bench.run(job, seat)
        if record.status == "failed":
            raise DiskFull("no room")
        return record

    with pytest.raises(DiskFull):
        list(run_together(bench.jobs(), run, Patience()))
    assert left(bench.folder) == [] and bench.steps("c") < 106


def test_who_takes_no_turns_is_told_of_when_it_has_ended(bench: Bench) -> None:
    for name in ("c", "go"):
        bench.stage.add(name, plan=None)
    records = run_together(bench.jobs(), bench.run, Patience())
    assert next(records).status == "ok" and bench.ran == ["c"]
    assert [record.status for record in records] == ["ok"] and bench.ran == ["c", "go"]


def test_as_many_are_alive_at_once_as_memory_holds(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("c", "go", "rust"):
        bench.stage.add(name, steps=56)
    looks = iter([2**31, 2**20, *[2**31] * 9])
    monkeypatch.setattr(heat_module, "available_bytes", lambda _: next(looks))
    records = bench.together()
    assert {record.status for record in records.values()} == {"ok"}
    heat = {name: (turns or {}).get("heat") for name, turns in bench.stage.took.items()}
    # The third had to wait for their end, and then had nobody to take turns with.
    assert heat["c"] == heat["go"] is not None and heat["rust"] is None


def test_a_disturbed_heat_is_run_again_as_one_within_the_limits(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("c", "go"):
        bench.stage.add(name)
    bench.stage.add("rust", before="raise SystemExit(7)")
    verdict = [False]
    monkeypatch.setattr(heat_module.Window, "judge", lambda self: [*[verdict[0]] * 8])
    monkeypatch.setattr(heat_module.Window, "end", lambda *_: [])
    bench.limits = {"repeats_if_disturbed": 1}
    records = bench.together()
    # One that failed keeps nobody from it, and is not run again.
    assert bench.ran == ["c", "go", "rust", "c", "go"] and records.pop("rust").status == "failed"
    for record in records.values():
        assert record.details["disturbed"] is True and record.details["disturbed_repeats"] == 1
        assert record.details["disturbed_by"] == ["others used the machine in 4 of 4 turns"]
    # A machine that is never quiet is not asked again and again.
    patience = Patience(left=1)
    for expected in (10, 13):
        list(run_together(bench.jobs(), bench.run, patience))
        assert len(bench.ran) == expected
    verdict[0], bench.ran[:] = True, []
    del bench.stage.plans["rust"]
    assert [record.details["disturbed"] for record in bench.together().values()] == [False, False]
    assert bench.ran == ["c", "go"]


def make_pair(cell: str, base: str) -> Pair:
    ids = [infer_cell(name, 0).without_repeat().id for name in (cell, base)]
    return Pair(
        stage="infer", cell=ids[0], base=ids[1], metric="latency", varies=("runtime",), rules=("serving.runtime",)
    )


def planned(folder: Path, name: str, repeat: int, *pairs: Pair, **spec: Any) -> Job:
    return make_job(folder, infer_cell(name, repeat), pairs=[pair.stored() for pair in pairs], **spec)


def names(found: Any) -> list[str]:
    return [" ".join(f"{job.cell.get('runtime')}{job.cell.repeat}" for job in heat) for heat in found]


def test_cells_that_pairs_join_make_one_heat_of_each_repeat(tmp_path: Path) -> None:
    one, other = make_pair("c", "go"), make_pair("rust", "go")
    jobs = [
        planned(tmp_path, name, repeat, *pairs)
        for repeat in range(2)
        for name, pairs in {"c": [one], "java": [], "go": [one, other], "rust": [other]}.items()
    ]
    assert names(in_heats(jobs)) == ["c0 go0 rust0", "java0", "c1 go1 rust1", "java1"]
    # Whoever has a record stays as it is.
    assert names(in_heats(jobs[4:6] + jobs[7:])) == ["c1 rust1", "java1"]


def test_who_takes_from_a_cell_that_has_not_run_yet_waits_for_it(tmp_path: Path) -> None:
    pair = make_pair("c", "go")
    first = planned(tmp_path, "java", 0)
    takes = {"model": ("infer", first.cell.id)}
    jobs = [planned(tmp_path, "c", 0, pair), first, planned(tmp_path, "go", 0, pair, inputs=takes)]
    assert names(in_heats(jobs)) == ["c0", "java0", "go0"]


def test_after_a_killed_runner_each_of_a_heat_runs_alone_for_nobody_knows_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SESSION, Owner.me().text)
    pair = make_pair("c", "go")
    jobs = [planned(tmp_path, name, 0, pair) for name in ("c", "go")]
    for job in jobs:
        Attempt(job.folder).begin("f" * 16, together=True)
    assert names(in_heats(jobs, attempt=1)) == ["c0 go0"] and names(in_heats(jobs, attempt=2)) == ["c0", "go0"]
    assert Attempt(jobs[0].folder).earlier("f" * 16) is None
    # Alone it is the likely reason.
    Attempt(jobs[0].folder).begin("f" * 16)
    assert Attempt(jobs[0].folder).earlier("f" * 16) is not None
    assert json.loads(Attempt(jobs[0].folder).path.read_text())["pid"] == os.getpid()


@pytest.mark.parametrize(("attempt", "heat"), [(1, ["c3 go3"]), (2, ["c3", "go3"])])
def test_more_repeats_whose_runner_was_killed_run_alone_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempt: int, heat: list[str]
) -> None:
    monkeypatch.setenv(SESSION, Owner.me().text)
    watching = SimpleNamespace(note=str, make_if_due=lambda: None)
    monkeypatch.setattr(run_block, "open_guard", nullcontext)
    for name in ("prepare_allocation", "check_locks", "Progress", "EarlyReport"):
        monkeypatch.setattr(run_block, name, lambda _: watching)
    ran: list[list[Job]] = []

    def run_nothing(jobs: list[Job], *_: Any) -> list[Record]:
        ran.append(jobs)
        return []

    monkeypatch.setattr(run_block, "run_together", run_nothing)
    jobs = [
        planned(tmp_path, name, 3, make_pair("c", "go"), optional=True, cell_id=infer_cell(name, 3).id)
        for name in ("c", "go")
    ]
    for job in jobs:
        Attempt(job.folder).begin("f" * 16, together=True)
    further: Any = SimpleNamespace(has_optional_repeats=True, run=lambda run_some: run_some(jobs))
    run_block.run_jobs(jobs, jobs[0].paths, attempt, further)
    assert names(ran) == heat
