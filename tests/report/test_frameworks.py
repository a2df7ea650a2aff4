"""Frameworks side by side: who is beside whom, what is said, and what is never said."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from make_framework_records import train_record, write_framework_study
from make_records import make_record

from transect.analysis.load import Loaded
from transect.domain.cell import Cell
from transect.domain.record import Cause, Record, Status
from transect.report.build import build_report
from transect.report.charts.theme import Styles
from transect.report.context import Context
from transect.report.findings.finding import Finding
from transect.report.making import all_parts, make_findings

Built = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("frameworks")
    build_report(write_framework_study(folder), folder / "report.html", title="F", questions=[])
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return (folder / "report.html").read_text(encoding="utf-8"), summary


def section(page: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', page, re.S)
    assert found is not None
    return found.group()


def text(part: str) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", part)).strip())


def tables(part: str) -> dict[str, list[list[str]]]:
    """Rows of every table by its caption, or by the title behind which it is folded."""
    found: dict[str, list[list[str]]] = {}
    for head, body in re.findall(
        r'aria-label="([^"]*)">\s*<table[^>]*>(.*?)</table>', part, re.S
    ):  # fmt: skip
        rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.S)
        found.setdefault(html.unescape(head), []).extend(
            [text(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)]
            for row in rows
        )
    return found


def findings(*records: Record) -> list[Finding]:
    context = Context(Loaded(study="s", records=list(records)), title="t")
    found = make_findings(context, all_parts().findings)
    assert not context.problems
    return found


def of_kind(found: list[Finding], kind: str) -> Finding:
    return next(one for one in found if one.kind == kind)


def test_the_section_follows_failures_and_nothing_went_wrong(built: Built) -> None:
    page, summary = built
    order = re.findall(r'<section id="([a-z]+)">', page)
    assert order[order.index("failures") :][:3] == ["failures", "frameworks", "speed"]
    assert summary["problems"] == []
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert "NaN" not in page and "nan " not in text(page)


def test_rows_are_sorted_by_time_to_quality_and_none_of_the_usual_kind_is_missing(
    built: Built,
) -> None:
    found = tables(section(built[0], "frameworks"))
    rows = found["digits-cnn: time to accuracy 0.95, soonest first"]
    heads, rows = rows[0], [row for row in rows if row[0] != "Framework and strategy"]
    time, label = heads.index("Time to quality (s)"), heads.index("Framework and strategy")
    values = [float(row[time]) for row in rows]
    assert values == sorted(values)
    assert len(rows) == 90
    names = " ".join(row[label] for row in rows)
    assert "synthetic" not in names and "sum of" not in names and "fp64" not in names
    assert "linear" not in names


def test_what_is_not_told_is_said_and_is_never_zero(built: Built) -> None:
    rows = tables(section(built[0], "frameworks"))[
        "digits-cnn: time to accuracy 0.95, soonest first"
    ]
    heads = rows[0]
    for row in rows:
        if "fsdp" in row[0] or "multiworker" in row[0]:
            cells = {head: row[heads.index(head)] for head in ("Compute (ms)", "Waited (ms)")}
            assert set(cells.values()) == {"not told"}
            overlap = row[heads.index("Overlap")]
            assert overlap == ("–" if row[heads.index("Ranks")] == "1" else "not told")
    speed = section(built[0], "speed")
    assert "waiting not told" in speed


def test_wrong_failed_and_skipped_cells_are_listed_with_their_reason(built: Built) -> None:
    rows = tables(section(built[0], "frameworks"))[
        "Not in the comparison: wrong, failed or skipped"
    ]
    assert [(row[0].split(" · batch")[0], row[2]) for row in rows[1:]] == [
        ("keras-2 · mpi-allreduce", "wrong result"), ("mxnet · kvstore-dist-async", "failed"),
        ("torch · ddp-nccl", "skipped"),
    ]  # fmt: skip
    reasons = [row[3] for row in rows[1:]]
    assert "outside their tolerance" in reasons[0]
    assert reasons[1] == "crash: Segmentation fault in rank 1"
    assert reasons[2] == "unsupported: NCCL needs a GPU on every rank"


def test_panels_stay_readable_and_say_what_they_leave_out(built: Built) -> None:
    part = section(built[0], "frameworks")
    for ranks in ("1 rank", "2 ranks", "4 ranks"):
        assert f"{ranks}: time to accuracy 0.95" in part
        assert f"{ranks}: time to accuracy 0.95" in text(part)
    assert re.search(r"12 of \d+ are drawn; the \d+ slowest stand in the table only", part)
    assert re.search(r"12 of \d+ are drawn; the \d+ costliest stand in the table only", part)
    for plot in re.findall(r'<svg class="plot".*?</svg>', built[0], re.S):
        assert not re.search(r'(?:fill|stroke)="(?:#|black|white|rgb)', plot)
        height = re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', plot)
        assert height is not None and float(height.group(1)) < 900


def test_the_cost_of_distribution_is_split_and_over_subscribed_cells_are_marked(
    built: Built,
) -> None:
    (rows,) = (
        rows for head, rows in tables(section(built[0], "frameworks")).items()
        if "what distribution costs" in head and "linear" not in head and len(rows) > 20
    )  # fmt: skip
    heads = rows[0]
    found = {(row[0].replace(" · batch 64", ""), row[1]): dict(zip(heads, row, strict=True))
             for row in rows[1:]}  # fmt: skip
    one = found["torch · mpi-allreduce", "2"]
    assert (one["Scaling"], one["Base"]) == ("strong", "single")
    whole = sum(int(one[part].replace("−", "-").removesuffix(" %"))
                for part in ("Waited", "Computing", "Input", "Other"))  # fmt: skip
    assert whole == pytest.approx(int(one["Cost"].removesuffix(" %")), abs=2)
    assert found["torch · mpi-allreduce", "4"][""] == "over-subscribed"
    assert found["torch · fsdp", "2"]["Waited"] == "not told"
    weak = found["numpy · mpi-allreduce · batch 128", "2"]
    assert weak["Scaling"] == "weak"


def test_each_framework_alone_stands_beside_the_fastest(built: Built) -> None:
    (rows,) = (rows for head, rows in tables(section(built[0], "frameworks")).items()
               if "frameworks alone" in head)  # fmt: skip
    found = {row[0].split(" · ")[0]: row for row in rows[1:]}
    assert len(found) == 8
    assert found["mxnet"][5] == "not distinguishable"
    assert found["numpy"][5] == "slower" and found["numpy"][3].startswith("50.")


def test_input_and_rules_have_their_tables(built: Built) -> None:
    found = tables(section(built[0], "frameworks"))
    inputs = {row[1]: row for row in found["digits-cnn: what input costs"][1:]}
    assert set(inputs) == {"files", "stored"}
    assert float(inputs["files"][5].removesuffix(" %")) == pytest.approx(20, abs=2)
    rows = found["digits-cnn: what the batch's rules do to the training"]
    heads, rows = rows[0], rows[1:]
    factors = {(row[1], row[2], row[3], row[4]): row[heads.index("Rate's factor")] for row in rows}
    assert factors == {
        ("1", "64", "mean", "none"): "1", ("1", "64", "mean", "linear"): "1",
        ("1", "64", "sum", "none"): "1", ("2", "64", "mean", "none"): "1",
        ("2", "64", "sum", "none"): "2", ("2", "128", "mean", "none"): "1",
        ("2", "128", "mean", "linear"): "2",
    }  # fmt: skip


def test_equality_shows_the_weights_and_how_batch_norm_is_treated(built: Built) -> None:
    part = section(built[0], "equality")
    assert "running statistics are those of rank 0" in text(part)
    (rows,) = (rows for head, rows in tables(part).items() if "loss and weights beside" in head)
    assert rows[1][0].startswith("keras-2 · mpi-allreduce")
    assert rows[1][3] == "7" and rows[1][-1] == "wrong result"
    assert "loss over tolerance" in part and "weights over tolerance" in part


def test_findings_name_cost_overlap_input_and_sum(built: Built) -> None:
    found = {one["kind"]: one for one in reversed(built[1]["findings"])}
    assert "waiting for messages" in found["distribution"]["text"]
    assert "27 with more ranks than cores left out" in found["distribution"]["evidence"]
    assert "40 % of the communication of torch · ddp-gloo" in found["overlap"]["text"]
    assert "7 cells of several ranks do not tell" in found["overlap"]["evidence"]
    assert found["input"]["text"].startswith("digits-cnn: decoding files costs torch · single")
    assert "the loss ends at 0.2 instead of 0.4" in found["reduction"]["text"]
    assert "weights 7 times" in found["equality"]["evidence"]
    for one in built[1]["findings"]:
        assert "keras-2 · mpi-allreduce" not in one["text"], "a wrong result wins nothing"


def repeats(*arguments: Any, **fields: Any) -> list[Record]:
    return [train_record(*arguments, repeat, noise=1 + repeat / 500, **fields)
            for repeat in range(3)]  # fmt: skip


def test_synthetic_input_never_wins_nor_is_its_speed_the_workloads() -> None:
    found = findings(
        *repeats("torch", "single", 1),
        *repeats("numpy", "single", 1, input="synthetic", changes={"samples_per_second": 9e9}),
    )
    assert "torch · single · 1 rank reaches" in of_kind(found, "fastest").text
    assert "of another training (synthetic input)" in of_kind(found, "fastest").evidence
    only = findings(*repeats("numpy", "single", 1, input="synthetic"))
    assert "no quality to reach" in of_kind(only, "fastest").text


def test_a_study_on_synthetic_input_alone_says_so_everywhere(tmp_path: Path) -> None:
    from transect.domain.record import write_record

    for record in (*repeats("torch", "single", 1, input="synthetic"),
                   *repeats("torch", "ddp-gloo", 2, input="synthetic")):  # fmt: skip
        write_record(tmp_path / "s" / "train" / record.cell_id / "record.json", record)
    summary = build_report(tmp_path / "s", tmp_path / "r.html", title="t", questions=[])
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert summary["problems"] == []
    assert "throughput on synthetic input" in page
    assert "Throughput on synthetic input" in page
    assert ">Throughput</figcaption>" not in page
    assert "Time to accuracy" not in text(section(page, "speed"))


def test_a_sum_wins_no_race_against_means_and_kinds_race_apart() -> None:
    found = findings(
        *repeats("numpy", "mpi-allreduce", 2), *repeats("numpy", "mpi-allreduce", 2, reduce="sum"),
        *repeats("torch", "single", 1, precision="fp64"),
        *repeats("numpy", "single", 1, precision="fp64"),
    )  # fmt: skip
    fastest = [one.text for one in found if one.kind == "fastest"]
    assert len(fastest) == 2
    assert "numpy · mpi-allreduce · 2 ranks reaches" in fastest[0]
    assert "nothing stands to compare it with" in fastest[0]
    assert "with fp64, torch · single" in fastest[1]


def test_no_overlap_and_untold_overlap_are_different_things() -> None:
    none = findings(*repeats("torch", "single", 1), *repeats("torch", "mpi-allreduce", 2))
    assert (
        "no communication hides behind computing in the 1 cell that tells it"
        in of_kind(none, "overlap").text
    )
    untold = findings(*repeats("torch", "single", 1), *repeats("torch", "fsdp", 2))
    assert "overlap" not in {one.kind for one in untold}
    assert re.search(r", \d+ % not told\.$", of_kind(untold, "distribution").text)


def test_a_sum_that_diverges_is_named_with_its_cause() -> None:
    cell = Cell.of(stage="train", workload="digits-cnn", framework="numpy", strategy="mpi-allreduce",
                ranks_per_node=2, batch=64, reduce="sum")  # fmt: skip
    broken = make_record(cell, status=Status.FAILED, cause=Cause.DIVERGED,
                         message="the loss is inf at step 7")  # fmt: skip
    found = findings(broken, *repeats("numpy", "mpi-allreduce", 2))
    assert "instead of their mean: diverged" in of_kind(found, "reduction").text
    assert "inf at step 7" in of_kind(found, "reduction").evidence


def test_published_sums_are_named_for_what_they_are_beside_the_nearest_mean() -> None:
    published = []
    for name, servers in (("published-allreduce", 0), ("published-sendrecv", 1)):
        for record in repeats("numpy", name, 4, reduce="sum", batch=48):
            layout = {
                "replicas": 4 - servers,
                "model_parts": 1,
                "micro_batches": 1,
                "servers": servers,
            }
            published.append(
                record.model_copy(update={"details": record.details | {"layout": layout}})
            )
    means = [
        *repeats("numpy", "mpi-allreduce", 2, batch=48),
        *repeats("numpy", "mpi-allreduce", 3, batch=48),
    ]
    told = [one.text for one in findings(*published, *means) if one.kind == "reduction"]
    assert len(told) == 2
    for text, factor in zip(told, (4, 3), strict=True):
        assert (
            f"sums without a mean, as published: effective rate x {factor}, every step counts"
            in text
        )
        assert "beside the mean by mpi-allreduce the loss ends at 0.1 instead of 0.4" in text
    assert "published-allreduce" in told[0] and "published-sendrecv" in told[1]
    # Two ranks of which one trains sum nothing.
    alone = {"replicas": 1, "model_parts": 1, "micro_batches": 1, "servers": 1}
    pair = [
        record.model_copy(update={"details": record.details | {"layout": alone}})
        for record in repeats("numpy", "published-sendrecv", 2, reduce="sum", batch=48)
    ]
    assert not [one for one in findings(*pair, *means) if one.kind == "reduction"]


def test_a_distributed_step_within_the_noise_carries_no_cost() -> None:
    found = findings(
        *repeats("torch", "single", 1, changes={"step_time": 1.0}),
        *[train_record("torch", "ddp-gloo", 2, repeat, changes={"step_time": step})
          for repeat, step in enumerate((0.45, 0.5, 0.57))],
    )  # fmt: skip
    one = of_kind(found, "distribution")
    assert "cannot be told apart from a perfect split" in one.text
    assert one.sureness == "open"


def test_eight_frameworks_with_twelve_strategies_look_different() -> None:
    frameworks = ["numpy", "torch", "tensorflow", "keras-tensorflow", "keras-torch", "keras-jax",
                  "keras-2", "mxnet"]  # fmt: skip
    strategies = ["single", *(f"way-{number}" for number in range(11))]
    styles = Styles(frameworks, strategies)
    assert len({styles.get(name).color for name in frameworks}) == 8
    found = [styles.get("torch", way) for way in strategies]
    assert len({style.shape for style in found}) == 12
    assert len({(style.shape, style.dash) for style in found}) == 12
    assert (found[0].shape, found[0].dash) == ("circle", ())
