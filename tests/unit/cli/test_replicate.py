"""`transect replicate`: a work's claims decided by records, told before a run, and refused where a rule came later."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from factories import train_cell
from result_runs import noisy, write_planned, write_run
from transect.domain.claims import Kind, Rule, Work, rule_id
from transect.domain.strict_yaml import load_model
from transect.domain.study import Study
from transect.report.replication.badge import badge
from transect.report.replication.page import rule_words
from transect.report.topics.claims.findings import sentence

WORK = """
title: Trainers compared
short: Trainers
cite: "A. Nobody, Made-up Proceedings 2020"
hardware: "laptop: one core is enough"
conditions:
  hardware: {there: a Xeon of 2016}
  versions: {there: not reported}
  data: {there: iris, here: same}
claims:
  - key: twice
    says: torch is twice as fast as numpy.
    quote: two times faster
    where: abstract
    kind: ratio
    published: 2.0
    n: 5
    rule: {test: within, factor: 1.25}
    measured:
      - {study: never-run, metric: samples_per_second, cells: {framework: torch}, over: {framework: numpy}}
      - {study: quick, metric: samples_per_second, cells: {framework: torch}, over: {framework: numpy}}
    why_apart: [training.*]
  - key: ten-times
    says: torch is ten times as fast as numpy.
    where: table 1
    kind: ratio
    published: 10.0
    rule: {test: within, factor: 1.25}
    measured: [{study: quick, metric: samples_per_second, cells: {framework: torch}, over: {framework: numpy}}]
  - key: slower
    says: numpy is faster than torch.
    where: table 2
    doubt: It was timed with its start.
    kind: ratio
    published: 1.5
    rule: {test: within, factor: 1.1}
    measured: [{study: quick, metric: samples_per_second, cells: {framework: numpy}, over: {framework: torch}}]
  - key: jax
    says: jax is faster than numpy.
    where: table 3
    kind: ratio
    published: 3.0
    rule: {test: at least, factor: 1.1}
    measured: [{study: quick, metric: samples_per_second, cells: {framework: jax}, over: {framework: numpy}}]
  - key: elsewhere
    says: A thousand GPUs are faster than one.
    where: figure 9
    kind: ratio
    not_comparable: it takes a thousand GPUs
"""
BEFORE, AFTER = "2026-01-01T00:00:00+00:00", "2026-09-01T00:00:00+00:00"
SAID = "of 5 claims 1 holds, 1 in direction only, 1 does not hold, 2 cannot be told here"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The file of a work."""
    file = tmp_path / "trainers.yaml"
    file.write_text(WORK)
    return file


def write_results(folder: Path, file: Path, *, since: str = BEFORE, factor: float = 2.0, day: int = 0) -> Path:
    """Write a study that ran: torch `factor` times as fast as numpy; and since when the work's rules have stood."""
    rates = {"numpy": noisy(100, 1, repeats=6), "torch": noisy(100 * factor, 2, repeats=6)}
    write_run(folder, rates, day=day)
    write_planned(folder, [train_cell(name, n) for name, values in rates.items() for n in range(len(values))])
    return fix(folder, file, since)


def fix(folder: Path, file: Path, since: str, **more: Any) -> Path:
    made = load_model(file, Work)
    entry = {"since": since, "commit": "a" * 40, "dirty": False}
    fixed = {rule_id(made, claim): entry for claim in made.claims if claim.rule}
    (folder / "rules.json").write_text(json.dumps({**more, **fixed}))
    return folder


def facts_of(results: Path, name: str = "trainers") -> Any:
    return json.loads((results / "replications" / name / "replication.json").read_text())


def claims_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {claim["key"]: claim for claim in facts["claims"]}


def replicate(transect: Any, results: Path, *arguments: object) -> tuple[int, str, str]:
    code, out, err = transect("replicate", *arguments, "--results", results)
    return code, out, err


@pytest.mark.parametrize(
    ("test", "kind"), [("within", Kind.NO_EFFECT), ("at least", Kind.VALUE), ("order", Kind.ORDER)]
)
def test_the_factor_of_a_rule_is_told_in_full(test, kind):
    assert "a factor of 1.001" in rule_words(Rule(test=test, factor=1.001), kind)


def test_claims_are_counted_in_words():
    assert sentence({"holds": 1, "open": 2}) == "of 3 claims 1 holds, 2 cannot be told here"
    assert sentence({"does not hold": 2}) == "of 2 claims 2 do not hold"


def test_a_work_is_decided_by_what_ran_and_says_so_on_a_page_as_data_and_in_the_index(tmp_path, work, transect):
    results = tmp_path / "results"
    write_results(results / "quick", work)
    code, out, err = replicate(transect, results, work, "--no-run")
    assert code == 0 and SAID in out and "never-run: it has not run here" in err
    facts = facts_of(results)
    claims = claims_of(facts)
    verdicts = {key: claim["verdict"] for key, claim in claims.items()}
    assert verdicts == {
        "twice": "holds",
        "ten-times": "direction only",
        "slower": "does not hold",
        "jax": "open",
        "elsewhere": "not comparable",
    }
    assert facts["said"] == SAID and facts["schema_version"] == 2 and "not the authors'" in facts["note"]
    assert facts["machine"] == {"CPU": "Made-up CPU", "cores": "4", "memory": "16.0 GiB"}
    assert facts["minutes"] == pytest.approx(12 * 9 / 60)
    twice = claims["twice"]
    (point,) = twice["points"]
    assert point["published"] == 2.0 and len(point["samples"]) == 6 and point["low"] < 2.0 < point["high"]
    assert twice["study"] == "quick" and twice["rule_since"] == BEFORE and twice["rule_commit"] == "a" * 40
    assert 0 < twice["gap"] < 0.25
    rows = {row["what"]: row for row in twice["conditions"]}
    assert rows["hardware"]["here"] == "Made-up CPU, 4 cores, 16.0 GiB" and rows["hardware"]["state"] == "differs"
    assert rows["data"]["state"] == "same" and rows["versions"]["state"] == rows["timed"]["state"] == "not reported"
    assert "numpy 2.1.0" in rows["versions"]["here"] and rows["ranks"]["here"] == "1"
    assert "thousand" in claims["elsewhere"]["reason"] and "jax" in claims["jax"]["reason"]
    page = (results / "replications/trainers/replication.html").read_text()
    for said in (SAID, "two times faster", "It was timed with its start.", "would have been seen", "Why apart", "<svg"):
        assert said in page, said
    assert "node-1" not in page + json.dumps(facts)
    index = (results / "replications/index.html").read_text()
    assert 'href="trainers/replication.html"' in index and "Trainers compared" in index


def test_each_claim_says_what_it_takes_to_run_it_again(tmp_path, work, transect):
    """Command, minutes of its own cells or the word of the study's file, hardware, locks, crate and DOI; and the badge."""
    results = tmp_path / "results"
    quick = write_results(results / "quick", work)
    root = {"@id": "./", "identifier": {"@id": "https://doi.org/10.5281/zenodo.1234567"}}
    (quick / "ro-crate-metadata.json").write_text(json.dumps({"@graph": [{"@id": "x"}, root]}))
    # Two claims of cells that nobody has here: a GPU, and a shipped study whose file says how long it takes.
    more = """
  - key: on-gpu
    says: It is faster on a GPU.
    where: table 4
    kind: ratio
    published: 3.0
    rule: {test: within, factor: 1.1}
    measured: [{study: docking, metric: samples_per_second, cells: {device: cuda}, over: {device: cpu}}]
  - key: served
    says: It serves faster on a GPU.
    where: table 4
    kind: ratio
    published: 3.0
    rule: {test: within, factor: 1.1}
    measured: [{study: never-run, stage: infer, metric: latency, cells: {provider: cuda}, over: {runtime: torch-eager}}]
  - key: on-nodes
    says: It is faster on nodes.
    where: table 4
    kind: ratio
    published: 3.0
    rule: {test: within, factor: 1.1}
    measured: [{study: never-run, metric: samples_per_second, cells: {nodes: [2, 4]}, over: {nodes: 1}}]
"""
    work.write_text(WORK + more)
    fix(quick, work, BEFORE)
    replicate(transect, results, work, "--no-run")
    facts = facts_of(results)
    again = {key: claim["again"] for key, claim in claims_of(facts).items()}
    command = f"transect run quick --results {results} && transect replicate {work} --results {results} --no-run"
    assert again["twice"] == {
        "command": command,
        "minutes": pytest.approx(12 * 9 / 60),
        "study_minutes": pytest.approx(12 * 9 / 60),
        "study_says": "",
        "hardware": "laptop",
        "hardware_by": "the cells that decide it",
        "environments": {"numpy": ["0123abcd"], "torch": ["0123abcd"]},
        "crate": str(quick / "ro-crate-metadata.json"),
        "doi": "10.5281/zenodo.1234567",
    }
    told = {
        key: (again[key]["hardware"], again[key]["minutes"], again[key]["doi"])
        for key in ("on-gpu", "served", "on-nodes")
    }
    assert told == {"on-gpu": ("one GPU", None, ""), "served": ("one GPU", None, ""), "on-nodes": ("cluster", None, "")}
    # What its file leaves open, its study may set: the word of the work's file.
    open_ = again["jax"]["hardware"], again["jax"]["hardware_by"]
    assert open_ == ("laptop: one core is enough", "its work's file, of all claims")
    assert (
        again["on-gpu"]["study_says"].endswith("under 10 minutes on two cores.") and not again["on-nodes"]["study_says"]
    )
    assert again["elsewhere"] is None and facts["badge"] == "1 of 8 holds"
    page = (results / "replications/trainers/replication.html").read_text()
    for said in ("by the cells that decide it", "under 10 minutes", "file says nothing of it", "torch 0123abcd"):
        assert said in page, said
    badge = ElementTree.parse(results / "replications/trainers/badge.svg").getroot()
    assert badge.get("aria-label") == "replicated: 1 of 8 holds" and "http" not in "".join(badge.itertext())


@pytest.mark.parametrize(
    ("counts", "words", "colour"),
    [
        ({"holds": 3}, "3 of 3 hold", "#1e6b30"),
        ({"holds": 1, "open": 1}, "1 of 2 holds", "#1f5a85"),
        ({"does not hold": 2}, "0 of 2 hold", "#9c2a21"),
    ],
)
def test_the_badge_is_read_on_any_ground(counts, words, colour):
    """White on its own fills, each with a contrast of 4.5 or more (WCAG 2.2, success criterion 1.4.3)."""
    svg = badge(counts).decode()
    fills = re.findall(r'<rect[^>]* fill="(#\w{6})"', svg)
    assert words in svg and fills[1] == colour
    for fill in fills:
        parts = [int(fill[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        assert 1.05 / (0.05 + sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear, strict=True))) >= 4.5


def test_a_rule_edited_after_the_run_ends_in_one_message_and_what_lay_there_stays(tmp_path, work, transect):
    results = tmp_path / "results"
    quick = write_results(results / "quick", work)
    assert replicate(transect, results, work, "--no-run")[0] == 0
    before = facts_of(results)
    old = json.loads((quick / "rules.json").read_text())
    work.write_text(WORK.replace("published: 10.0", "published: 2.0"))
    fix(quick, work, AFTER, **old)
    # The rules that are as they were have stood since then.
    (quick / "rules.json").write_text(json.dumps(json.loads((quick / "rules.json").read_text()) | old))
    code, out, err = replicate(transect, results, work, "--no-run")
    assert code == 2 and not out and len(err.strip().splitlines()) == 1
    for said in ("ten-times", AFTER, BEFORE, "transect run quick train --force"):
        assert said in err, said
    assert "twice" not in err and facts_of(results) == before


def test_a_rule_that_nobody_noted_before_the_run_decides_nothing_and_the_page_says_so(tmp_path, work, transect):
    results = tmp_path / "results"
    write_results(results / "quick", work, since=AFTER)
    code, _, err = replicate(transect, results, work, "--no-run")
    assert code == 5 and "rules noted after the runs" in err
    twice = claims_of(facts_of(results))["twice"]
    assert twice["verdict"] == "open" and twice["rule_younger_than_runs"] and "younger than runs" in twice["reason"]


def test_results_of_another_machine_stand_beside(tmp_path, work, transect):
    results, other = tmp_path / "results", tmp_path / "friend"
    write_results(results / "quick", work)
    write_results(other / "quick", work, factor=10.0, day=1)
    assert replicate(transect, results, work, "--no-run", "--with", other)[0] == 0
    (facts,) = facts_of(results)["elsewhere"]
    verdicts = {key: claim["verdict"] for key, claim in claims_of(facts).items()}
    assert facts["letter"] == "A" and verdicts["ten-times"] == "holds" and verdicts["twice"] != "holds"
    assert "Who ran it" in (results / "replications/trainers/replication.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-work"], "no-such-work"),
        (["gone.yaml"], "no such file"),
        (["trainers.yaml", "--with", "gone"], "cannot be read"),
        (["trainers.yaml", "--with", "results"], "same folder as the results here"),
        (["trainers.yaml", "--with", "friend", "--with", "friend/quick"], "same folder as one of friend"),
        (["trainers.yaml", "--with", "copy"], "same runs as the results here"),
        (["trainers.yaml", "--with", "unlike"], "expected one of these"),
        (["--no-run"], "expected the name of a work"),
        (["trainers.yaml", "--list", "--no-run"], "--list"),
    ],
)
def test_bad_input_is_one_message_and_writes_nothing(
    tmp_path: Path, work: Path, transect: Any, monkeypatch: Any, arguments: Sequence[str], said: str
):
    monkeypatch.chdir(tmp_path)
    write_results(tmp_path / "results/quick", work)
    write_results(tmp_path / "friend/quick", work, day=1)
    write_results(tmp_path / "copy/quick", work)
    write_results(tmp_path / "unlike/other", work)
    more = [] if "--list" in arguments or not arguments[0].endswith(".yaml") else ["--no-run"]
    code, out, err = transect("replicate", *arguments, *more)
    assert code == 2 and not out and said in err
    assert not (tmp_path / "results/replications").exists()


def test_a_claim_on_an_unknown_metric_is_named(tmp_path, work, transect):
    work.write_text(WORK.replace("metric: samples_per_second", "metric: sample_per_second", 1))
    code, _, err = replicate(transect, tmp_path / "results", work, "--no-run")
    assert code == 2 and "claim twice" in err and "samples_per_second" in err


def test_damaged_data_are_told_in_the_index(tmp_path, work, transect):
    results = tmp_path / "results"
    write_results(results / "quick", work)
    replicate(transect, results, work, "--no-run")
    torn = results / "replications/torn"
    torn.mkdir()
    (torn / "replication.json").write_text('{"schema_version": 1')
    code, out, err = replicate(transect, results)
    index = (results / "replications/index.html").read_text()
    assert code == 0 and "index.html" in out and "torn" in err and "torn" in index and "trainers" in index
    odd = {"schema_version": 2, "counts": {"holds": float("inf")}, "short": None, "title": {}, "day": "", "machine": []}
    for told in (odd, odd | {"counts": {}}, facts_of(results) | {"title": {}}):
        (torn / "replication.json").write_text(json.dumps(told))
        code, out, err = replicate(transect, results)
        assert code == 0 and "torn" in err and "Traceback" not in err


def test_a_rule_that_was_edited_is_refused_before_anything_runs(tmp_path, work, transect, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results"
    quick = write_results(results / "quick", work)
    assert replicate(transect, results, work, "--no-run")[0] == 0
    there = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    work.write_text(WORK.replace("published: 10.0", "published: 2.0"))
    code, out, err = replicate(transect, results, work)
    assert code == 2 and not out and "ten-times" in err and len(err.strip().splitlines()) == 1
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == there
    assert quick.is_dir()


def test_pages_of_two_works_of_one_name_and_pages_whose_results_are_gone_stay(tmp_path, work, transect):
    results = tmp_path / "results"
    quick = write_results(results / "quick", work)
    assert replicate(transect, results, work, "--no-run")[0] == 0
    before = facts_of(results)
    other = tmp_path / "other" / work.name
    other.parent.mkdir()
    other.write_text(WORK.replace("Trainers compared", "Another work"))
    code, _, err = replicate(transect, results, other, "--no-run")
    assert code == 2 and "Trainers compared" in err and facts_of(results) == before
    quick.rename(tmp_path / "gone")
    code, _, err = replicate(transect, results, work, "--no-run")
    assert code == 5 and "stays as it was" in err and facts_of(results) == before


def test_before_anything_runs_the_list_says_what_can_be_decided(tmp_path, work, transect, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path)
    code, out, _ = transect("replicate", "trainers.yaml", "--list")
    rows = {line.split()[1]: line for line in out.splitlines() if line.startswith("trainers")}
    assert code == 0 and "3 of 5 claims can be decided here" in out
    assert "can be decided here" in rows["twice"] and "not yet" in rows["twice"]
    assert "not here" in rows["jax"] and "no cell of framework jax" in rows["jax"]
    assert "not comparable" in rows["elsewhere"]
    assert not (tmp_path / "results").exists()


STUDY = "name: quick\ntrain:\n  repeats: 5\n  grids:\n    - {workloads: [iris-mlp], frameworks: [FRAMEWORKS], strategies: [single]}\n"


def write_study(folder: Path, frameworks: str = "numpy, torch") -> None:
    (folder / "quick.yaml").write_text(STUDY.replace("FRAMEWORKS", frameworks))


@pytest.mark.env
@pytest.mark.parametrize(("ended", "code"), [(0, 0), (7, 1)])
def test_a_study_runs_under_rules_that_were_noted_before_and_one_that_fails_is_told(
    tmp_path, work, transect, monkeypatch, ended, code
):
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path)
    asked = []

    def run(study: Any, system: str, results: Path) -> int:
        asked.append((study.name, system))
        (fixed,) = {entry["since"] for entry in json.loads((results / "quick/rules.json").read_text()).values()}
        # Its cells ran years later.
        write_results(results / "quick", work, since=fixed, day=4000)
        return ended

    monkeypatch.setattr("transect.cli.replicate._run", run)
    given, out, err = transect("replicate", "trainers.yaml")
    assert given == code and asked == [("quick", "laptop")] and SAID in out
    told = {row["study"]: row["why"] for row in facts_of(tmp_path / "results")["troubles"]}
    assert "never-run" in told["never-run"] and ("exit code 7" in told.get("quick", "")) == bool(ended)
    assert "never-run" in err


def test_a_study_that_would_decide_nothing_here_does_not_run(tmp_path, work, transect, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path, "mxnet")
    monkeypatch.setattr("transect.cli.replicate._run", lambda *_: pytest.fail("it ran"))
    code, out, err = transect("replicate", "trainers.yaml")
    assert code == 5 and "of 5 claims 5 cannot be told here" in out and "quick: no cell of framework torch" in err


def test_no_room_is_one_message_and_loses_nothing(tmp_path, work, transect, monkeypatch):
    results = tmp_path / "results"
    write_results(results / "quick", work)
    assert replicate(transect, results, work, "--no-run")[0] == 0
    before = facts_of(results)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "replication.json")

    monkeypatch.setattr("transect.engine.replications.write_atomic", full)
    code, out, err = replicate(transect, results, work, "--no-run")
    assert code and not out and "No space left" in err and "Traceback" not in err and facts_of(results) == before


def test_no_study_takes_the_folder_of_replications():
    with pytest.raises(ValueError, match="transect replicate"):
        Study(name="replications")
