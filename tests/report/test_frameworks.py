"""Frameworks side by side: who is beside whom, what is said, and what is never said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from make_framework_records import train_record, write_framework_study
from pages import Page, Part
from said_of_records import context, findings, only, prose, written

from factories import make_record, train_cell, write_records
from transect.analysis.comparisons import Verdict
from transect.analysis.distribution import distribution_costs
from transect.domain.record import Cause, Record, Status
from transect.report.build import build_report, write_page
from transect.report.charts.theme import Styles
from transect.report.findings.finding import Finding
from transect.report.made import Made, make_all


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_all(write_framework_study(tmp_path_factory.mktemp("frameworks")), title="F")


@pytest.fixture(scope="module")
def page(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(made, path)
    return Page.read(path)


@pytest.fixture(scope="module")
def tables(page: Page) -> dict[str, list[list[str]]]:
    """The section's tables."""
    return page.section("frameworks").tables


@pytest.fixture(scope="module")
def told(made: Made) -> dict[str, list[Finding]]:
    """The study's findings by kind."""
    kinds = dict.fromkeys(one.kind for one in made.findings)
    return {kind: [one for one in made.findings if one.kind == kind] for kind in kinds}


def table(tables: dict[str, list[list[str]]], title: str) -> list[dict[str, str]]:
    """Return the rows of a table by their heads."""
    head, *rows = tables[title]
    return [dict(zip(head, row, strict=True)) for row in rows if row != head]


SOONEST = "digits-cnn: time to accuracy 0.95, soonest first"
WAY = "Framework and strategy"


def test_prose(told: dict[str, list[Finding]], snapshot: Any) -> None:
    kinds = ("fastest", "distribution", "overlap", "input", "reduction", "equality")
    assert {kind: written(told[kind]) for kind in kinds} == snapshot(name="study")
    assert prose(SETS, *kinds[:3], "reduction") == snapshot(name="sets")


def test_the_section_follows_failures_and_nothing_went_wrong(page: Page) -> None:
    order = page.sections
    assert order[order.index("failures") :][:3] == ["failures", "frameworks", "speed"]
    assert page.summary["problems"] == []
    assert len(page.ids) == len(set(page.ids))
    assert not re.search(r"\bnan\b", page.text, re.IGNORECASE)
    assert "NaN" not in str(page.soup)


def test_rows_are_sorted_by_time_to_quality_and_none_of_the_usual_kind_is_missing(
    tables: dict[str, list[list[str]]],
) -> None:
    rows = table(tables, SOONEST)
    values = [float(row["Time to quality (s)"]) for row in rows]
    assert values == sorted(values) and len(rows) == 90
    names = " ".join(row[WAY] for row in rows)
    assert not any(kind in names for kind in ("synthetic", "sum of", "fp64", "linear"))


def test_what_is_not_told_is_said_and_is_never_zero(page: Page, tables: dict[str, list[list[str]]]) -> None:
    untold = [row for row in table(tables, SOONEST) if re.search("fsdp|multiworker", row[WAY])]
    assert untold
    for row in untold:
        assert row["Compute (ms)"] == row["Waited (ms)"] == "not told"
        assert row["Overlap"] == ("–" if row["Ranks"] == "1" else "not told")
    assert "waiting not told" in page.section("speed").text


def test_wrong_failed_and_skipped_cells_are_listed_with_their_reason(tables: dict[str, list[list[str]]]) -> None:
    rows = table(tables, "Not in the comparison: wrong, failed or skipped")
    assert [(row[WAY].split(" · batch")[0], row["Outcome"]) for row in rows] == [
        ("keras-2 · mpi-allreduce", "wrong result"),
        ("mxnet · kvstore-dist-async", "failed"),
        ("torch · ddp-nccl", "skipped"),
    ]
    wrong, failed, skipped = (row["Reason"] for row in rows)
    assert "tolerance" in wrong
    # The record's cause and its message.
    assert failed.startswith("crash: Segm") and skipped.startswith("unsupported: NCCL")


def test_panels_stay_readable_and_say_what_they_leave_out(page: Page) -> None:
    part = page.section("frameworks")
    for ranks in ("1 rank", "2 ranks", "4 ranks"):
        assert f"{ranks}: time to" in part.text
    for cut in ("slowest", "costliest"):
        assert re.search(rf"12 of \d+ are drawn; the \d+ {cut} ", part.text)
    assert page.plots
    for plot in page.plots:
        assert not re.search(r'(?:fill|stroke)="(?:#|black|white|rgb)', str(plot))
        assert float(str(plot.get("viewBox") or plot["viewbox"]).split()[3]) < 900


def test_the_cost_of_distribution_is_split_and_over_subscribed_cells_are_marked(
    tables: dict[str, list[list[str]]],
) -> None:
    (rows,) = (
        rows
        for head, rows in tables.items()
        if "what distribution costs" in head and "linear" not in head and len(rows) > 20
    )
    found = {(row[0].replace(" · batch 64", ""), row[1]): dict(zip(rows[0], row, strict=True)) for row in rows[1:]}
    one = found["torch · mpi-allreduce", "2"]
    assert (one["Scaling"], one["Base"]) == ("strong", "single")
    whole = sum(
        int(one[part].replace("−", "-").removesuffix(" %")) for part in ("Waited", "Computing", "Input", "Other")
    )
    assert whole == pytest.approx(int(one["Cost"].removesuffix(" %")), abs=2)
    assert found["torch · mpi-allreduce", "4"][""] == "over-subscribed"
    assert found["torch · fsdp", "2"]["Waited"] == "not told"
    weak = found["numpy · mpi-allreduce · batch 128", "2"]
    assert weak["Scaling"] == "weak"


def test_each_framework_alone_stands_beside_the_fastest(tables: dict[str, list[list[str]]]) -> None:
    [(_, *rows)] = [rows for head, rows in tables.items() if "frameworks alone" in head]
    found = {row[0].split(" · ")[0]: row for row in rows}
    assert len(found) == 8
    assert found["mxnet"][4] == "not distinguishable"
    assert found["numpy"][4] == "slower" and found["numpy"][3].startswith("50.")


def test_input_and_rules_have_their_tables(tables: dict[str, list[list[str]]]) -> None:
    inputs = {row[1]: row for row in tables["digits-cnn: what input costs"][1:]}
    assert set(inputs) == {"files", "stored"}
    assert float(inputs["files"][5].removesuffix(" %")) == pytest.approx(20, abs=2)
    [(heads, *rows)] = [rows for head, rows in tables.items() if "the batch's rules" in head]
    factors = {(row[1], row[2], row[3], row[4]): row[heads.index("Rate's factor")] for row in rows}
    assert factors == {
        ("1", "64", "mean", "none"): "1",
        ("1", "64", "mean", "linear"): "1",
        ("1", "64", "sum", "none"): "1",
        ("2", "64", "mean", "none"): "1",
        ("2", "64", "sum", "none"): "2",
        ("2", "128", "mean", "none"): "1",
        ("2", "128", "mean", "linear"): "2",
    }


def test_equality_shows_the_weights_and_how_batch_norm_is_treated(page: Page) -> None:
    part = page.section("equality")
    assert "running statistics" in part.text
    [(_, first, *_)] = [rows for head, rows in part.tables.items() if "loss and weights" in head]
    assert first[0].startswith("keras-2 · mpi-allreduce")
    assert first[3] == "7" and first[-1] == "wrong result"
    assert all(f"{what} over tolerance" in str(part.soup) for what in ("loss", "weights"))


def test_findings_name_cost_overlap_input_and_sum(told: dict[str, list[Finding]]) -> None:
    [cost], [overlap], equality = told["distribution"], told["overlap"], told["equality"][0]
    assert cost.groups[0].cell.ranks > cost.groups[1].cell.ranks == 1 and len(cost.comparisons) == 1
    assert "27 with" in cost.evidence, "more ranks than cores"
    assert "40 %" in overlap.text and "torch · ddp-gloo" in overlap.text
    assert "7 cells" in overlap.evidence, "of several ranks that do not tell"
    [given], reduction = told["input"], told["reduction"][0]
    assert given.subject == "digits-cnn" and "torch · single" in given.claim
    assert "0.2" in reduction.text and "0.4" in reduction.text
    assert equality.alarm and "weights 7 times" in equality.evidence
    for one in (one for every in told.values() for one in every):
        assert "keras-2 · mpi-allreduce" not in one.text, "a wrong result wins nothing"


def repeats(*arguments: Any, **fields: Any) -> list[Record]:
    return [train_record(*arguments, repeat, noise=1 + repeat / 500, **fields) for repeat in range(3)]


def laid_out(records: list[Record], replicas: int, servers: int) -> list[Record]:
    """Give records a layout as strategies with servers tell it."""
    layout = {"replicas": replicas, "model_parts": 1, "micro_batches": 1, "servers": servers}
    return [one.model_copy(update={"details": one.details | {"layout": layout}}) for one in records]


TORCH, SYNTHETIC = repeats("torch", "single", 1), repeats("numpy", "single", 1, input="synthetic")
BESIDE_SYNTHETIC = [*TORCH, *repeats("numpy", "single", 1, input="synthetic", changes={"samples_per_second": 9e9})]
KINDS = [
    *repeats("numpy", "mpi-allreduce", 2),
    *repeats("numpy", "mpi-allreduce", 2, reduce="sum"),
    *repeats("torch", "single", 1, precision="fp64"),
    *repeats("numpy", "single", 1, precision="fp64"),
]
NO_OVERLAP = [*TORCH, *repeats("torch", "mpi-allreduce", 2)]
UNTOLD = [*TORCH, *repeats("torch", "fsdp", 2)]
DIVERGED = make_record(
    train_cell(workload="digits-cnn", strategy="mpi-allreduce", ranks_per_node=2, batch=64, reduce="sum"),
    status=Status.FAILED,
    cause=Cause.DIVERGED,
    message="the loss is inf at step 7",
)
PUBLISHED = [
    one
    for name, servers in (("published-allreduce", 0), ("published-sendrecv", 1))
    for one in laid_out(repeats("numpy", name, 4, reduce="sum", batch=48), 4 - servers, servers)
]
MEANS = [one for n in (2, 3) for one in repeats("numpy", "mpi-allreduce", n, batch=48)]
NOISY = [
    *repeats("torch", "single", 1, changes={"step_time": 1.0}),
    *[
        train_record("torch", "ddp-gloo", 2, repeat, changes={"step_time": step})
        for repeat, step in enumerate((0.45, 0.5, 0.57))
    ],
]
SETS = {
    "beside synthetic input": BESIDE_SYNTHETIC,
    "synthetic input alone": SYNTHETIC,
    "kinds": KINDS,
    "no overlap": NO_OVERLAP,
    "untold overlap": UNTOLD,
    "a diverged sum": [DIVERGED, *repeats("numpy", "mpi-allreduce", 2)],
    "published sums": [*PUBLISHED, *MEANS],
    "within the noise": NOISY,
}


def test_synthetic_input_never_wins_nor_is_its_speed_the_workloads() -> None:
    beside, alone = (only("fastest", *one).decision for one in (BESIDE_SYNTHETIC, SYNTHETIC))
    assert beside is not None and beside.winner == "torch · single · 1 rank"
    [left_out] = beside.left_out
    assert "synthetic" in left_out.what and "another training" in left_out.why
    assert alone is not None and not alone.winner and "synthetic" in alone.instead


def test_a_study_on_synthetic_input_alone_says_so_everywhere(tmp_path: Path) -> None:
    alone = repeats("torch", "single", 1, input="synthetic")
    write_records(tmp_path / "s", *alone, *repeats("torch", "ddp-gloo", 2, input="synthetic"))
    build_report(tmp_path / "s", tmp_path / "r.html", title="t", questions=[])
    page = Page.read(tmp_path / "r.html")
    assert page.summary["problems"] == []
    captions = [Part(one).text for one in page.soup.select("figcaption")]
    assert "Throughput on synthetic input" in captions and "Throughput" not in captions
    assert "throughput on synthetic" in page.text
    assert "Time to accuracy" not in page.section("speed").text


def test_a_sum_wins_no_race_against_means_and_kinds_race_apart() -> None:
    means, double = findings(*KINDS)["fastest"]
    assert means.decision is not None and double.decision is not None
    assert means.decision.winner == "numpy · mpi-allreduce · 2 ranks" and not means.comparisons
    assert double.decision.scope == "with fp64" and len(double.comparisons) == 1
    assert double.decision.winner.startswith("torch · single")


def test_no_overlap_and_untold_overlap_are_different_things() -> None:
    assert "1 cell" in only("overlap", *NO_OVERLAP).text
    assert "overlap" not in findings(*UNTOLD)
    untold = context(*UNTOLD)
    floor = untold.floors.get("train", "digits-cnn", "step_time")
    [cost] = distribution_costs(untold.of("train"), floor)
    assert not cost.told and cost.waited is None
    assert only("distribution", *UNTOLD).text.endswith("not told.")


def test_a_sum_that_diverges_is_named_with_its_cause() -> None:
    found = only("reduction", *SETS["a diverged sum"])
    assert found.claim.endswith("diverged.") and "step 7" in found.evidence


def test_published_sums_are_named_for_what_they_are_beside_the_nearest_mean() -> None:
    told = findings(*PUBLISHED, *MEANS)["reduction"]
    names = ("published-allreduce", "published-sendrecv")
    for one, name, factor in zip(told, names, (4, 3), strict=True):
        assert name in one.text and f"x {factor}," in one.text and "mpi-allreduce" in one.text
        assert "0.1" in one.text and "0.4" in one.text
    # Two ranks of which one trains sum nothing.
    pair = laid_out(repeats("numpy", "published-sendrecv", 2, reduce="sum", batch=48), 1, 1)
    assert "reduction" not in findings(*pair, *MEANS)


def test_a_distributed_step_within_the_noise_carries_no_cost() -> None:
    found = only("distribution", *NOISY)
    assert found.confidence == "inconclusive" and found.comparisons[0].verdict is Verdict.SAME


def test_eight_frameworks_with_twelve_strategies_look_different() -> None:
    frameworks = ["numpy", "torch", "tensorflow", "keras-tensorflow", "keras-torch", "keras-jax", "keras-2", "mxnet"]
    strategies = ["single", *(f"way-{number}" for number in range(11))]
    styles = Styles(frameworks, strategies)
    assert len({styles.get(name).color for name in frameworks}) == 8
    found = [styles.get("torch", way) for way in strategies]
    assert len({style.shape for style in found}) == 12
    assert len({(style.shape, style.dash) for style in found}) == 12
    assert (found[0].shape, found[0].dash) == ("circle", ())
