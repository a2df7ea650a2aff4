"""What a sceptical reader asks of the page's front: is a winner named where nothing shows one, is anything missing?"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from make_records import make_record, provenance

from transect.analysis.comparisons import Sureness, compare
from transect.analysis.groups import group_records
from transect.domain.cell import Cell
from transect.domain.record import Cause, Record, Status, write_record
from transect.domain.study import Question
from transect.report.answers import answer
from transect.report.build import build_report
from transect.report.findings.finding import Finding, Race, lost_runs
from transect.report.rerun import Cells

OTHER = provenance(host="other", cpu_model="Another CPU", cores=64)


class Made:
    """Records of one study; `noise` is drawn from a stored seed."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._random = random.Random(5)

    def noise(self, size: float = 0.01) -> float:
        return 1 + self._random.gauss(0, size)

    def train(
        self, workload: str, framework: str = "numpy", strategy: str = "single", *, time: float | None = 1.0,
        rate: float = 100.0, ranks: int = 1, repeats: int = 5, batch: int = 64, target: float = 0.9,
        accuracy: float = 0.95, checked: bool = True, over: bool = False, cause: Cause | None = None,
        first: int = 0, **more: Any,
    ) -> None:  # fmt: skip
        axes = more.pop("axes", {})
        for repeat in range(first, repeats):
            cell = Cell.of(
                stage="train", workload=workload, framework=framework, strategy=strategy,
                ranks_per_node=ranks, batch=batch, repeat=repeat, **axes,
            )  # fmt: skip
            if cause is not None:
                self.records.append(make_record(cell, status=Status.FAILED, cause=cause))
                continue
            metrics = {"samples_per_second": rate * self.noise(), "accuracy": accuracy}
            metrics |= {"equality_ratio": 0.5} if checked else {}
            metrics |= {"time_to_quality": time * self.noise()} if time is not None else {}
            quality = {"metric": "accuracy", "target": target, "reached": time is not None}
            details = {"quality": quality, "over_subscribed": over, "global_batch": batch}
            self.records.append(make_record(cell, metrics, details=details, **more))

    def infer(
        self, workload: str, runtime: str, latency: float, *, batch: int = 1, threads: int = 1,
        cause: Cause | None = None, repeats: int = 5, first: int = 0, axes: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:  # fmt: skip
        for repeat in range(first, repeats):
            cell = Cell.of(
                stage="infer", workload=workload, exporter="dynamo", runtime=runtime, provider="cpu",
                batch=batch, threads=threads, repeat=repeat, **(axes or {}),
            )  # fmt: skip
            if cause is not None:
                self.records.append(make_record(cell, status=Status.FAILED, cause=cause))
                continue
            time = latency * self.noise()
            metrics = {
                "latency": time,
                "throughput": batch / time,
                "max_abs_difference": 1e-7,
                "top1_agreement": 1.0,
            }
            self.records.append(make_record(cell, metrics, **more))

    def summary(self, folder: Path, **more: Any) -> dict[str, Any]:
        for record in self.records:
            write_record(folder / "s" / record.stage / record.cell_id / "record.json", record)
        return build_report(
            folder / "s", folder / "report.html", title="t", questions=(), only=(), **more
        )

    def table(self, folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the entries of the decision table by workload and column: the first thing told, or why not."""
        told = self.summary(folder)["decisions"]
        return {
            (one["workload"], one["question"]): one["decided"][0] if one["decided"] else one for one in told
        }  # fmt: skip


@pytest.fixture
def made() -> Made:
    return Made()


def why(entry: dict[str, Any]) -> dict[str, str]:
    return {one["what"]: one["why"] for one in entry["left_out"]}


def test_ways_on_as_many_ranks_are_compared_before_one_of_them_wins(
    made: Made, tmp_path: Path
) -> None:
    for framework, strategy, rate in (("numpy", "mpi-allreduce", 350), ("torch", "ddp-gloo", 351)):
        made.train("tie", framework, time=4.0)
        made.train("tie", framework, strategy, ranks=4, time=1.2, rate=rate)
        made.train("won", framework, time=4.0)
        made.train(
            "won", framework, strategy, ranks=4, time=None, rate=rate + 200 * (framework == "torch")
        )
        made.train("slow", framework, time=4.0)
    made.train("slow", "torch", "ddp-gloo", ranks=4, time=9.0, rate=40)
    # More samples a second with a larger batch are another training.
    made.train("tie", "numpy", "mpi-allreduce", ranks=4, batch=256, rate=900, time=3.0)
    table = made.table(tmp_path)
    tie, won, slow = (table[name, "scale"] for name in ("tie", "won", "slow"))
    assert {tie["winner"], *tie["tied"]} == {"numpy · mpi-allreduce", "torch · ddp-gloo"}
    assert won["winner"] == "torch · ddp-gloo" and not won["tied"]
    assert "times the rate of numpy · mpi-allreduce" in won["gain"]
    assert "5.5" in won["value"] and "target missed" in won["quality"]
    assert slow["winner"] == "" and "slower than on fewer" in slow["instead"]


def test_no_workload_is_missing_and_nothing_that_was_asked_is_called_not_asked(
    made: Made, tmp_path: Path
) -> None:
    made.train("broken", time=4.0)
    made.train("broken", "numpy", "mpi-allreduce", ranks=4, cause=Cause.CRASH)
    made.train("shared", time=4.0)
    made.train("shared", "numpy", "mpi-allreduce", ranks=8, over=True)
    made.train("random", time=None, axes={"input": "synthetic"})
    made.infer("none", "cpp", 1e-4, cause=Cause.TIMEOUT)
    table = made.table(tmp_path)
    assert table["broken", "scale"]["why_not"] == "nothing usable of 1 cell: 1 failed: crash"
    assert "more ranks than cores" in table["shared", "scale"]["why_not"]
    assert "synthetic" in table["random", "train"]["instead"]
    assert "failed: timeout" in table["none", "serve-many"]["why_not"]
    assert table["broken", "serve-one"]["why_not"] == "not part of this study"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Not asked in this study" not in page


def test_who_lost_runs_or_ran_on_another_machine_is_no_sure_winner(
    made: Made, tmp_path: Path
) -> None:
    for workload, more in (("lost", {}), ("apart", {"provenance": OTHER}), ("fair", {})):
        made.train(workload, "numpy", time=5.0)
        made.infer(workload, "python", 1e-4)
        kept = 3 if workload == "lost" else 5
        made.train(workload, "torch", time=1.0, repeats=kept, **more)
        made.infer(workload, "cpp", 1e-5, repeats=kept, **more)
    made.train("lost", "torch", first=3, cause=Cause.TIMEOUT)
    made.infer("lost", "cpp", 1e-5, first=3, cause=Cause.TIMEOUT)
    table = made.table(tmp_path)
    for column in ("train", "serve-one", "serve-many"):
        assert table["fair", column]["sureness"] == "firm"
        assert (
            table["lost", column]["sureness"] == table["apart", column]["sureness"] == "tentative"
        )
        assert "2 of its 5 runs gave no result (timeout)" in table["lost", column]["quality"]
        assert "gave no result" not in table["fair", column]["quality"]


def test_a_race_is_to_one_target_and_of_one_training(made: Made, tmp_path: Path) -> None:
    for framework, target, time in (
        ("numpy", 0.99, 3.0),
        ("torch", 0.99, 2.0),
        ("keras", 0.5, 0.1),
    ):
        made.train("iris", framework, time=time, target=target, accuracy=target + 0.001)
    made.train("iris", "numpy", time=0.01, axes={"precision": "fp64"})
    made.train("below", "numpy", time=1.0, accuracy=0.3)
    made.train("below", "torch", time=3.0, checked=False)
    table = made.table(tmp_path)
    iris = table["iris", "train"]
    assert iris["winner"].startswith("torch") and "accuracy 0.99," in iris["quality"]
    assert why(iris) == {
        "keras · single · 1 rank": "another target", "numpy · single · 1 rank, fp64": "another training"
    }  # fmt: skip
    assert "below the target" in table["below", "train"]["quality"]


def test_a_runtime_that_was_not_measured_where_the_best_was_is_named(
    made: Made, tmp_path: Path
) -> None:
    for batch in (1, 64):
        made.infer("iris", "python", 1e-4 * batch**0.5, batch=batch)
    made.infer("iris", "cpp", 5e-5)
    made.infer("small", "rust", 5e-5)
    for runtime in ("python", "cpp"):
        made.infer("small", runtime, 4e-5, batch=8)
    for threads in (1, 2):
        made.infer("alike", "python", 1e-5, threads=threads)
    made.infer("alike", "cpp", 9e-5, threads=1)
    summary = made.summary(tmp_path)
    table = {(one["workload"], one["question"]): one["decided"][0] for one in summary["decisions"]}
    many = table["iris", "serve-many"]
    assert many["winner"].startswith("python") and many["sureness"] == "tentative"
    assert why(many) == {"cpp": "not measured at batch 64, 1 thread, where the best is"}
    one = table["small", "serve-one"]
    assert set(why(one)) == {"cpp", "python"} and set(why(one).values()) == {
        "not measured at batch 1"
    }
    said = next(
        x["text"] for x in summary["findings"] if x["text"].startswith("small on cpu, batch 1")
    )
    assert "no other runtime was measured at that batch" in said
    assert "not told apart from python" in table["alike", "serve-one"]["quality"]


def test_strange_workloads_run_again_by_their_own_ids_and_no_others(made: Made) -> None:
    for name in ("a b", "iris.big", "iris", "plain"):
        made.train(name, repeats=2)
    made.infer("other", "cpp", 1e-4, repeats=1)
    cells = Cells(made.records, ["s"])

    def of(subject: str) -> list[str]:
        finding = Finding(
            subject=subject, claim="c", evidence="e", sureness=Sureness.FIRM, kind="k",
            stages=("train", "infer"),
        )  # fmt: skip
        return cells.of(finding)

    ids = {
        name: sorted(f"train/{r.cell_id}" for r in made.records if r.cell.workload == name)
        for name in ("a b", "iris")
    }
    assert of("a b") == ids["a b"] and of("iris") == ids["iris"]
    assert of("iris.big") == ["train/iris.big.*"] and of("plain") == ["train/plain.*"]
    assert of("study") == ["train", "infer"]


def test_a_rule_that_is_nearly_right_is_told_from_those_that_say_something() -> None:
    finding = Finding(
        subject="iris",
        claim="c.",
        evidence="e",
        sureness=Sureness.FIRM,
        kind="k",
        rule="training.fastest",
    )
    told = answer(Question(ask="?", answered_by=["training.fastes"]), [finding])
    assert "there are findings of training.fastest" in told.text


def test_cells_to_come_are_said_under_the_table(made: Made, tmp_path: Path) -> None:
    made.train("iris", repeats=1)
    keys = [(record.stage, record.cell_id) for record in made.records]
    made.summary(tmp_path, planned=[*keys, ("train", "late.torch~00000000")])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "1 cell is still to come" in page


def test_lost_runs_are_said_of_those_that_kept_some() -> None:
    made = Made()
    made.train("iris", repeats=3)
    assert lost_runs(group_records(made.records)[0]) == ""
    made.train("iris", first=3, repeats=5, cause=Cause.CRASH)
    assert lost_runs(group_records(made.records)[0]).startswith("2 of its 5 runs")


def test_nobody_wins_by_a_median_that_the_comparison_turns_over() -> None:
    made = Made()
    made.train("iris", repeats=3)
    [group] = group_records(made.records)
    worse = compare([1.2, 1.2, 1.2], [1.0, 1.0, 1.0])
    better = compare([1.0, 1.0, 1.0], [1.2, 1.2, 1.2])
    assert worse is not None and better is not None

    def sureness(one: Any) -> Sureness:
        return Race(
            best=group, values=(1.0,), tied=(), runner_up=None, comparison=one, comparisons=(one,)
        ).sureness

    assert sureness(worse) is Sureness.OPEN and sureness(better) is not Sureness.OPEN
