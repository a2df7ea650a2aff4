"""Every rule of a finding: tested, named once, in the documentation, and known to the questions of the studies."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from co_design_records import write_measured
from make_benchmark_records import write_benchmark_study
from make_federate_records import write_federate_study
from make_framework_records import write_framework_study
from make_multi_node_records import write_multi_node_study
from make_retrain_records import write_retrain_study
from make_runtime_records import write_runtime_study
from make_ticket_records import write_ticket_study
from pages import Page
from rank_records import write_rank_study
from said_of_records import context

from factories import make_record, train_cell
from transect.analysis.load import Loaded
from transect.domain.paths import ROOT
from transect.domain.study import Question
from transect.report.engine.build import write_page
from transect.report.engine.collect import make_findings, make_section
from transect.report.engine.context import Context
from transect.report.engine.finding import rule_fits
from transect.report.engine.parts import all_parts
from transect.report.engine.report import Made, make_all
from transect.report.engine.rules import RULES, unknown_names

# Each study that the tests make beside the synthetic one.
MADE = {
    "frameworks": write_framework_study,
    "nodes": write_multi_node_study,
    "ranks": write_rank_study,
    "federated": write_federate_study,
    "retraining": write_retrain_study,
    "tickets": write_ticket_study,
    "runtimes": write_runtime_study,
    "co-design": write_measured,
    "benchmarks": write_benchmark_study,
}
# Rules that none of these studies calls for, and the tests that do.
ELSEWHERE = {
    "asynchronous": "test_co_design.py",
    "docking": "test_docking_section.py",
    "conformance": "test_docking_section.py",
    "container": "test_container_findings.py",
    "messages": "test_messages.py",
    "storage": "test_storage_bounds.py",
}
STUDIES = sorted((ROOT / "config/studies").glob("*.yaml"))


def test_every_finding_of_a_report_names_its_rule_and_where_more_stands(report: Path, summary: dict[str, Any]) -> None:
    page = report.read_text(encoding="utf-8")
    sections = set(re.findall(r'<section id="([a-z-]+)">', page))
    anchors = [finding["id"] for finding in summary["findings"]]
    assert len(set(anchors)) == len(anchors)
    for finding in summary["findings"]:
        assert re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_-]+)*", finding["rule"]), finding["rule"]
        assert finding["section"] in sections, finding["rule"]
        assert f'id="{finding["id"]}"' in page
        assert bool(finding["run_again"]) == bool(finding["cells"])
    assert json.dumps(summary).count('"run_again": "transect run') > 10


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    asks = [Question(ask="?", answered_by=["*"])]
    return {
        name: make_all(write(tmp_path_factory.mktemp(name) / "s"), title=name, questions=asks)
        for name, write in MADE.items()
    }


@pytest.mark.parametrize("name", MADE)
def test_a_page_of_each_study_is_whole_and_inert(studies: dict[str, Made], name: str, tmp_path: Path) -> None:
    write_page(studies[name], tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page.read(html)
    assert studies[name].summary["problems"] == [] and "not be made" not in page.text
    assert len(page.ids) == len(set(page.ids))
    assert "<script>window.HACKED" not in html and "\x1b" not in html and "\x00" not in html
    assert not re.search(r"\bnan\b", page.text)
    for plot in map(str, page.plots):
        assert "NaN" not in plot and not re.search(r'(?:fill|stroke)="(?:#|black|white|rgb)', plot)


# What runs under settings that it calls the thesis's, it asked for.
@pytest.mark.parametrize("name", ["frameworks", "retraining", "runtimes", "co-design", "benchmarks"])
def test_no_finding_of_a_study_that_asks_for_no_published_work_speaks_of_one(
    studies: dict[str, Made], name: str
) -> None:
    context = Context(studies[name].context.loaded, title="t")
    every = [finding.text + finding.evidence for finding in make_findings(context, all_parts().findings)]
    assert every and not [text for text in every if "ublished" in text or "settings were not run" in text]


def test_sections_of_nothing(snapshot: Any) -> None:
    """What each section says without records, and without any of its own: None is no section."""
    empty, plain = (
        Context(Loaded(study="empty"), title="empty"),
        context(make_record(train_cell(), {"samples_per_second": 1.0})),
    )
    bodies = {}
    for section in all_parts().sections:
        made = [make_section(section, made_of) for made_of in (empty, plain)]
        bodies[section.key] = [body and [body.body.lead, len(body.body.blocks)] for body in made]
    assert not empty.problems and not plain.problems
    assert bodies == snapshot


@pytest.fixture(scope="module")
def rules(synthetic: Made, studies: dict[str, Made]) -> set[str]:
    """All rules that say something of the studies that the tests make."""
    return {finding.rule for made in (synthetic, *studies.values()) for finding in made.findings}


def test_every_printed_interval_is_about_its_number_and_one_that_decided(
    synthetic: Made, studies: dict[str, Made]
) -> None:
    checked = 0
    for finding in (finding for made in (synthetic, *studies.values()) for finding in made.findings):
        said = f"{finding.text}\n{finding.evidence}"
        printed = re.findall(
            r"(\d+\.?\d*) times(?: as long| the ideal| the speed of \d+ ranks?)? \([\d.]+ % interval (\d+\.?\d*) to (\d+\.?\d*)\)",
            said,
        )
        decided = {
            f"{end:.3g}" for made in finding.contrasts for e in (made.ratio, made.ratio.inverse) for end in (e.value,)
        }
        for value, low, high in printed:
            assert float(low) <= float(value) <= float(high), finding.text
        checked += sum(f"{float(value):.3g}" in decided for value, _, _ in printed)
    assert checked > 5


def test_every_rule_is_tested_and_its_name_is_its_own(rules: set[str]) -> None:
    makers = all_parts().findings
    names = [maker.name for maker in makers]
    assert len(set(names)) == len(names)
    silent = {name for name in names if not any(rule.split(".")[0] == name for rule in rules)}
    assert silent == set(ELSEWHERE)
    for maker in makers:
        if maker.name in silent:
            text = (Path(__file__).parent / ELSEWHERE[maker.name]).read_text(encoding="utf-8")
            assert "test_prose" in text, maker.name


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
    assert [rule for rule in rules if not any(rule_fits(rule, known) for known in RULES)] == []


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
