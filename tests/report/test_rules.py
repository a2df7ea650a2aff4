"""Every rule of a finding: tested, named once, in the documentation, and known to the questions of the studies."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from transect.analysis.load import load_records
from transect.domain.paths import ROOT
from transect.domain.study import Question
from transect.report.context import Context
from transect.report.findings.finding import rule_fits
from transect.report.made import Made
from transect.report.making import all_parts, make_findings
from transect.report.rules import RULES, unknown_names

# Each study that the tests make beside the synthetic one, and how.
MADE = [
    ("make_framework_records", "write_framework_study"),
    ("make_multi_node_records", "write_multi_node_study"),
    ("rank_records", "write_rank_study"),
    ("make_retrain_records", "write_retrain_study"),
    ("make_ticket_records", "write_ticket_study"),
    ("make_runtime_records", "write_runtime_study"),
    ("co_design_records", "write_measured"),
    ("make_benchmark_records", "write_benchmark_study"),
]
# Rules that none of these studies calls for, and the tests that do.
ELSEWHERE = {
    "asynchronous": "test_asynchronous.py",
    "docking": "test_docking_section.py",
    "conformance": "test_conformance_section.py",
    "container": "test_container_findings.py",
    "drift": "test_drift_energy.py",
}
STUDIES = sorted((ROOT / "config/studies").glob("*.yaml"))


def test_every_finding_of_a_report_names_its_rule_and_where_more_stands(report: Path, summary: dict[str, Any]) -> None:
    page = report.read_text(encoding="utf-8")
    sections = set(re.findall(r'<section id="([a-z-]+)">', page))
    anchors = [one["id"] for one in summary["findings"]]
    assert len(set(anchors)) == len(anchors)
    for one in summary["findings"]:
        assert re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_-]+)*", one["rule"]), one["rule"]
        assert one["section"] in sections, one["rule"]
        assert f'id="{one["id"]}"' in page
        assert not one["chart"] or f'id="{one["chart"]}"' in page
        assert bool(one["run_again"]) == bool(one["cells"])
    assert sum(bool(one["chart"]) for one in summary["findings"]) > 10
    assert json.dumps(summary).count('"run_again": "transect run') > 10


@pytest.fixture(scope="module")
def rules(synthetic: Made, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """All rules that say something of the studies that the tests make."""
    makers, told = all_parts().findings, {one.rule for one in synthetic.findings}
    for module, function in MADE:
        folder = tmp_path_factory.mktemp("made") / "s"
        path = getattr(importlib.import_module(module), function)(folder)
        context = Context(load_records(path), title="t", questions=[Question(ask="?", answered_by=["*"])])
        told |= {one.rule for one in make_findings(context, makers)}
        assert not any(rule.endswith(".fault") for rule in told), context.problems
    return told


def test_every_rule_is_tested_and_its_name_is_its_own(rules: set[str]) -> None:
    makers = all_parts().findings
    names = [maker.name for maker in makers]
    assert len(set(names)) == len(names)
    silent = {name for name in names if not any(one.split(".")[0] == name for one in rules)}
    assert silent == set(ELSEWHERE)
    for maker in makers:
        if maker.name in silent:
            text = (Path(__file__).parent / ELSEWHERE[maker.name]).read_text(encoding="utf-8")
            assert maker.make.__name__ in text or "only(" in text or "findings(" in text, maker.name


def test_every_rule_points_to_a_section_that_exists() -> None:
    parts = all_parts()
    keys = {section.key for section in parts.sections} | {"failures"}
    for maker in parts.findings:
        assert {maker.section, *maker.sections.values()} <= keys, maker.name


def test_the_documentation_lists_every_rule(rules: set[str]) -> None:
    page = (ROOT / "docs/studies.md").read_text(encoding="utf-8")
    missing = {rule for rule in rules if f"`{rule}`" not in page and not rule.startswith("doubt.")}
    assert missing == set()
    rows = re.findall(r"^\| (`.*`) \|", page.partition("| rule |")[2].partition("\n\n")[0], re.M)
    assert [name for row in rows for name in re.findall(r"`([^`]+)`", row)] == [*RULES]


def test_a_question_can_name_every_rule(rules: set[str]) -> None:
    assert [rule for rule in rules if not any(rule_fits(rule, one) for one in RULES)] == []


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_the_questions_of_the_studies_name_rules_and_sections_that_exist(file: Path) -> None:
    parts = all_parts()
    page = (ROOT / "docs/studies.md").read_text(encoding="utf-8")
    known = {*re.findall(r"`([a-z_]+(?:\.[a-z-]+)?)`", page)}
    for asked in yaml.safe_load(file.read_text(encoding="utf-8"))["questions"]:
        question = Question(**asked)
        assert question.answered_by or question.shown_in, question.ask
        assert not unknown_names([question], parts)
        assert {rule for rule in question.answered_by if "*" not in rule} <= known
        assert set(question.shown_in) <= {section.key for section in parts.sections}
