"""`transect compare`: which folders it takes, what it tells of them, and how it writes what they name."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ElementTree
from datetime import timedelta

import pytest

from factories import train_cell, write_records
from result_runs import FRAMEWORKS, START, noisy, rates, run_record, write_planned, write_run


def test_a_copy_is_no_second_measurement(tmp_path, compared):
    write_run(tmp_path / "a", rates(1))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    code, facts = compared()
    assert (code, facts["outcome"]) == (5, "not comparable")
    assert len(facts["others"][0]["same_measurement"]) == 6


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        (("a",), "one alone"),
        (("a", "a"), "is the same folder as"),
        (("a", "link"), "is the same folder as"),
        (("a", "nowhere"), "No such file"),
        (("a", "file"), "is no whole JSON"),
        (("a", "empty"), "no records there"),
        (("a", "many"), "expected a folder with some: other, quick"),
    ],
)
def test_folders_that_cannot_be_used_are_refused_with_one_message(tmp_path, transect, folders, message):
    write_run(tmp_path / "a", rates(1))
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    for name in ("quick", "other"):
        write_run(tmp_path / "many" / name, {"torch": [1.0]})
    code, out, err = transect("compare", *(tmp_path / name for name in folders))
    assert (code, out) == (2, "")
    assert message in err and err.count("\n") == 1 and err.startswith("transect: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--margin", "5"), "written as '5 %'"),
        (("--margin", "0%"), "more than 0"),
        (("--quality-margin", "120%"), "--quality-margin"),
        (("--format", "xml"), "expected table, json or markdown"),
        (("--metric", "sample_per_second"), "did you mean 'samples_per_second'?"),
    ],
)
def test_options_that_mean_nothing_are_refused(tmp_path, transect, options, message):
    write_run(tmp_path / "a", rates(1))
    write_run(tmp_path / "b", rates(2), day=1)
    code, out, err = transect("compare", tmp_path / "a", tmp_path / "b", *options)
    assert (code, out) == (2, "") and message in err


def test_half_a_run_is_compared_as_far_as_it_is_there_and_says_so(tmp_path, transect, compared):
    write_run(tmp_path / "a", rates(1))
    there = {name: rates(2)[name] for name in FRAMEWORKS[:3]}
    write_run(tmp_path / "b", there, day=1)
    every = [train_cell(name, repeat) for name in FRAMEWORKS for repeat in range(5)]
    write_planned(tmp_path / "b", every)
    damaged = tmp_path / "b" / "train" / train_cell("keras", 4).id / "record.json"
    damaged.write_text(damaged.read_text()[:500])
    code, facts = compared()
    compared_set = facts["others"][0]
    assert code == 0 and len(compared_set["without_record"]) == 15
    assert {lone["state"] for lone in compared_set["only_base"]} == {"no record yet"}
    assert len(compared_set["problems"]) == 1 and "no JSON" in compared_set["problems"][0]
    _, out, _ = transect("compare", tmp_path / "a", tmp_path / "b")
    printed = " ".join(out.split())
    assert "3 cells of A" in printed and "no JSON" in printed
    assert compared("--complete")[0] == 5


def test_cells_that_are_planned_no_more_do_not_count(tmp_path, compared):
    write_run(tmp_path / "a", rates(1))
    write_run(tmp_path / "b", rates(2, torch=0.5), day=1)
    write_planned(tmp_path / "b", [train_cell(n, r) for n in FRAMEWORKS if n != "torch" for r in range(5)])
    code, facts = compared()
    (alone,) = facts["others"][0]["only_base"]
    assert code == 0 and alone["state"] == "no longer planned"
    # Records of an earlier plan of the same cells do not count either.
    write_planned(tmp_path / "b", [train_cell(n, r) for n in FRAMEWORKS for r in range(5)], fingerprint="new")
    code, facts = compared()
    assert code == 5 and len(facts["others"][0]["without_record"]) == 30


def test_machine_and_versions_that_differ_are_named(tmp_path, compared):
    write_run(tmp_path / "a", rates(1))
    write_run(tmp_path / "b", rates(2), day=1, commit="1" * 40, host="node-2")
    _, facts = compared()
    named = {(fact["kind"], fact["fact"]): fact["other"] for fact in facts["others"][0]["differences"]}
    assert named == {("machine", "host"): ["node-2"], ("software", "git commit"): ["1" * 12]}


def test_a_unit_that_changed_is_not_compared(tmp_path, compared):
    write_run(tmp_path / "a", rates(1))
    for repeat in range(3):
        record = run_record(train_cell("torch", repeat), {"samples_per_second": 1.0}, at=START + timedelta(days=1))
        raw = record.metrics[0].model_copy(update={"unit": "kHz"})
        write_records(tmp_path / "b", record.model_copy(update={"metrics": [raw]}))
    code, facts = compared()
    (line,) = facts["others"][0]["lines"]
    assert code == 5 and "unit" in line["reason"]


EVIL = "x`|</summary><script>alert(1)</script>@everyone ![i](http://x)\x1b[2J\n# forged"


@pytest.mark.env
def test_hostile_names_are_escaped_everywhere(tmp_path, transect):
    for name, seed in (("a", 1), ("b", 2)):
        folder = tmp_path / f"{name}<img src=x>`@everyone`"
        for repeat, rate in enumerate(noisy(100.0 / seed, seed)):
            evil = train_cell(EVIL, repeat)
            write_records(
                folder,
                run_record(
                    evil,
                    {"samples_per_second": rate},
                    host=EVIL + name,
                    at=START + timedelta(days=seed, minutes=repeat),
                ),
            )
            odd = train_cell(EVIL + name, repeat)
            write_records(folder, run_record(odd, {"samples_per_second": rate}))
    a, b = sorted(tmp_path.iterdir())
    page, text, drawn = (tmp_path / name for name in ("o.html", "o.md", "o.svg"))
    code, out, err = transect("compare", a, b, "--html", page, "--markdown", text, "--badge", drawn)
    assert code == 4, err
    assert "\x1b" not in out and "\n# forged" not in out
    written = page.read_text()
    assert "<script>alert" not in written and "<img" not in written
    assert "&lt;script&gt;alert(1)" in written
    markdown = text.read_text()
    assert "\x1b" not in markdown and "\n# forged" not in markdown
    # Outside of code nothing of a name is left.
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", markdown)
    assert "@everyone" not in outside and "<script" not in outside and "![" not in outside
    assert "<img" not in outside
    ElementTree.parse(drawn)


def test_markdown_names_what_is_worse_and_folds_the_rest(tmp_path, transect):
    write_run(tmp_path / "a", rates(1))
    write_run(tmp_path / "b", rates(2, torch=0.7), day=1)
    code, out, _ = transect("compare", tmp_path / "a", tmp_path / "b", "--format", "markdown")
    assert code == 4
    head, _, folded = out.partition("<details>")
    assert head.lstrip().startswith("### transect: B beside A: worse")
    assert "| worse | confirmed | train: iris-mlp · torch" in head and "−3" in head
    assert "5 same" in folded and "keras" in folded and "keras" not in head


def test_markdown_fits_a_comment(tmp_path, transect):
    for name, seed in (("a", 1), ("b", 2), ("c", 3)):
        for place in range(60):
            cell = train_cell(workload=f"{place:03}" + "-a-rather-long-name" * 8)
            write_records(tmp_path / name, run_record(cell, {"samples_per_second": 100.0 + seed * (place % 3)}))
            only = train_cell(name, workload=f"{place:03}" + "-only-on-one-side" * 8)
            write_records(tmp_path / name, run_record(only, {"samples_per_second": 1.0}))
    _, out, _ = transect("compare", *(tmp_path / name for name in "abc"), "--format", "markdown")
    assert len(out.encode()) < 65_536
    assert "rows more" in out
