"""The draft of a publication: it says what the report says, names nothing that is not there, and foreign text is text."""

from __future__ import annotations

import re
import shutil
import subprocess
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from make_records import make_record
from test_formats import EVERY, NASTY, check_latex, hostile

from factories import ingest_record, log_metric, log_run, provenance, train_cell, write_records
from transect import __version__
from transect.domain.claims import Work
from transect.domain.record import Cause, Status
from transect.domain.study import Question
from transect.report.engine.formats import REPORT_FORMATS, Contents
from transect.report.engine.formats._bibliography import method_works
from transect.report.engine.formats._paper_parts import breakable
from transect.report.engine.formats.latex_tables import latex
from transect.report.engine.report import Made, make_all
from transect.report.topics.study import methods

ENDINGS = [text or "nothing" for text in NASTY]


def paper(made: Made) -> Contents:
    return REPORT_FORMATS.get("paper").contents(made)


def nasty_work(work: Work) -> Work:
    """A work as published under hostile names."""
    return work.model_copy(update={"title": "".join(NASTY), "short": "a%\\{}_#~^&" * 3, "cite": "".join(NASTY)})


def body(contents: Contents) -> str:
    """What it says, without the places where a word may break."""
    return contents.files["paper.tex"].decode().partition(r"\begin{document}")[2].replace(r"\allowbreak{}", "")


def check_whole(contents: Contents) -> None:
    """Hold a draft to what the compilers would: all that it refers to is there, once, and no text is a command."""
    text, bib = contents.files["paper.tex"].decode(), contents.files["references.bib"].decode()
    check_latex(text.partition(r"\fitted}\fi}")[2])
    figures = set(re.findall(r"\\includegraphics\[[^]]*\]\{([^}]+)\}", text))
    assert {f"{name}.pdf" for name in figures} | {"paper.tex", "references.bib"} == set(contents.files)
    labels = re.findall(r"\\label\{([^}]+)\}", text)
    assert len(labels) == len(set(labels)) and set(re.findall(r"\\ref\{([^}]+)\}", text)) <= set(labels)
    keys = re.findall(r"^@\w+\{(.*),$", bib, re.MULTILINE)
    cited = {key for every in re.findall(r"\\cite\{([^}]+)\}", text) for key in every.split(",")}
    assert len(keys) == len(set(keys)) and cited <= set(keys) and "software-transect" in cited
    # To BibTeX a brace behind a backslash is a brace too.
    for entry in re.split(r"^(?=@)", bib, flags=re.MULTILINE)[1:]:
        depths = [entry[:place].count("{") - entry[:place].count("}") for place in range(len(entry))]
        assert min(depths[1:]) >= 0 and entry.count("{") == entry.count("}"), entry
        assert [place for place, depth in enumerate(depths) if depth == 0][-1] >= len(entry) - 2


def failed(folder: Path, texts: list[str]) -> Path:
    """Write a study of which nothing ended well, in whose names and messages texts stand."""
    for repeat, text in enumerate(texts):
        cell = train_cell(workload=text, repeat=repeat)
        told: dict[str, Any] = {"libraries": {text: text}, "environment": {"name": text}, "git": {"commit": text}}
        record = make_record(cell, status=Status.FAILED, cause=Cause.CRASH, message=text, log_tail=text)
        write_records(folder, record.model_copy(update={"provenance": told}))
    return folder


@pytest.fixture(scope="module")
def drafts(synthetic: Made, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Contents]:
    """Drafts of studies of every kind, by what is odd about them."""
    folder = tmp_path_factory.mktemp("papers")
    (folder / "empty").mkdir()
    nasty = hostile(synthetic)
    context = copy(nasty.context)
    [work] = context.works
    context.works = [nasty_work(work), work]
    asked = [Question(ask=text, answered_by=["training.*"]) for text in ENDINGS]
    return {
        "hostile": paper(replace(nasty, context=context)),
        "unasked": paper(make_all(folder / "empty", title="")),
        "without records": paper(make_all(folder / "empty", title=EVERY, questions=["What?"], works=[work])),
        "all failed": paper(make_all(failed(folder / "failed", ENDINGS), title="x", questions=asked)),
    }


def test_every_draft_is_whole(drafts: dict[str, Contents]) -> None:
    for contents in drafts.values():
        check_whole(contents)


@pytest.mark.parametrize("text", NASTY)
def test_words_break_only_between_letters(text: str) -> None:
    written = latex(text)
    check_latex(breakable(written))
    assert breakable(written).replace(r"\allowbreak{}", "") == written


def test_it_answers_what_was_asked_with_its_confidence(synthetic: Made) -> None:
    asked = make_of(synthetic, "training.fastest")
    text = body(paper(asked))
    [answer] = asked.front.answers
    assert answer.clauses
    abstract, _, rest = text.partition(r"\end{abstract}")
    assert all(latex(clause.text) in abstract for clause in answer.first)
    for clause in answer.clauses:
        assert latex(clause.finding.text) in rest and latex(clause.finding.evidence) in rest
    assert len(re.findall(r"\\emph\{\((?:sure|likely|not known)\)\}", abstract)) == len(answer.first)
    assert r"\includegraphics" in rest and "What was compared" in rest
    assert r"git checkout" in rest or "commits" in rest
    [left] = [sentence for sentence in paper(asked).left_out if sentence.startswith("sections that no question names")]
    assert "export" in left and "speed" not in left


def make_of(made: Made, rule: str) -> Made:
    """The same records under one question, which a rule answers."""
    folder = made.context.loaded.results
    return make_all(folder, title="x", questions=[Question(ask="Which is first?", answered_by=[rule])])


def test_a_study_without_questions_tells_all_that_was_found(study: Path) -> None:
    made = make_all(study, title="x")
    text = body(paper(made))
    for _, members in made.front.more:
        assert latex(members[0].finding.text) in text
    assert "names no question" in text and r"\section{Published and measured}" not in text


def test_a_question_that_names_no_rule_hides_no_finding(synthetic: Made) -> None:
    assert [question.answered_by for question in synthetic.context.questions] == [[]]
    text = body(paper(synthetic))
    found = [members[0].finding for _, members in synthetic.front.more]
    # A claim stands beside what was published, in words of its own.
    assert found and all(latex(one.text) in text for one in found if one.subject != "claims")


def test_claims_stand_beside_what_differs(synthetic: Made) -> None:
    [work] = synthetic.context.works
    text = body(paper(synthetic))
    part = text.partition(r"\section{Published and measured}")[2].partition(r"\section{Limits}")[0]
    assert r"\cite{work-a-2020}" in part and latex(work.claims[0].says) in part
    assert "What differs from what was published" in part and "not reported" in part


def test_figures_are_those_of_the_cells_that_an_answer_is_about(synthetic: Made) -> None:
    made = make_of(synthetic, "serving.runtime")
    drawn = re.findall(
        r"\\includegraphics\[[^]]*\]\{figures/([^/]+)/([^}]+)\}", body(paper(made)).partition("Which is first?")[2]
    )
    [answer] = made.front.answers
    about = {clause.finding.subject for clause in answer.clauses}
    named = [name for section, name in drawn if section == answer.clauses[0].finding.section]
    assert named and all(any(workload in name for workload in about) for name in named)


def test_limits_name_what_failed_and_where_records_lie_on_no_machine(synthetic: Made) -> None:
    text = body(paper(synthetic))
    part = text.partition(r"\section{Limits}")[2].partition(r"\section{Reproduce}")[0]
    for said in ("killed by the kernel at 4 GiB", "no CUDA device here", "more processes than cores"):
        assert said in part
    assert latex(str(synthetic.context.loaded.results)) not in text


def test_no_path_of_the_machine_that_measured_is_published(tmp_path: Path) -> None:
    rate = log_metric("Triad", 1e3, "MB/s", "memory_bandwidth", 1e6)
    write_records(tmp_path / "logs", ingest_record(log_run("/home/elsewhere/stream.txt", "stream", rate)))
    question = Question(ask="How fast?", shown_in=["hardware"])
    text = body(paper(make_all(tmp_path / "logs", title="x", questions=[question])))
    assert r"begin{longtable}" in text.partition(r"section{Results}")[2].partition(r"section{Limits}")[0]
    assert "elsewhere" not in text
    assert "See hardware" not in text
    abstract = text.partition(r"\end{abstract}")[0]
    assert "Shown in the results." in abstract
    nowhere = paper(make_all(tmp_path / "logs", title="x", questions=[question], only=("methods",)))
    assert "Shown in the results." not in body(nowhere)


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("died in /home/me/a_b/run.sh: 1", "died in \\ldots{}/run.sh: 1"),
        ("`A=/scratch/me/bin:/home/me/lib`", "\\texttt{A=\\ldots{}/bin:\\ldots{}/lib}"),
        ("No such file: '/home/me/x.log'", "No such file: \\textquotesingle{}\\ldots{}/x.log\\textquotesingle{}"),
        ("[/home/me/x] </home/me/y>", "{[}\\ldots{}/x{]} \\textless{}\\ldots{}/y\\textgreater{}"),
        ("file:///home/me/x.log", "file://\\ldots{}/x.log"),
        ("https://example.org/a/b, ~/a/b and ../a/b or 5 MB/s in /proc/self/io", None),
    ],
)
def test_of_paths_in_messages_the_last_name_stays(said: str, written: str | None) -> None:
    assert breakable(latex(said)).replace("\\allowbreak{}", "") == (written or latex(said))


def test_figures_that_there_is_no_room_for_are_counted(tmp_path: Path) -> None:
    units = {
        "memory_bandwidth": "B/s",
        "flops": "FLOP/s",
        "update_rate": "1/s",
        "sparse_flops": "FLOP/s",
        "metadata_rate": "1/s",
    }
    rates = [log_metric(name, 1e9, unit, name) for name, unit in units.items()]
    write_records(tmp_path / "logs", ingest_record(*(log_run(f"{name}.txt", name, *rates) for name in ("hpcc", "hpl"))))
    question = Question(ask="How fast?", shown_in=["hardware"])
    text = body(paper(make_all(tmp_path / "logs", title="x", questions=[question])))
    assert text.count(r"\includegraphics") == 3 and "2 further figures in the report." in text


@pytest.mark.parametrize("hosts", [["node-of-ours"], ["node-of-ours", "other-of-ours"]])
def test_no_name_of_a_machine_is_published(tmp_path: Path, hosts: list[str]) -> None:
    nodes = {"SLURM_JOB_NODELIST": "node-of-ours"}
    records = [
        make_record(train_cell(repeat=n), {"step_time": 1e-3}, provenance=provenance("base", host=host, slurm=nodes))
        for n, host in enumerate(hosts)
    ]
    text = body(paper(make_all(write_records(tmp_path / "named", *records), title="x")))
    assert "-of-ours" not in text.replace("{}", "") and "CPU model" in text


def test_what_reads_the_results_looks_where_they_were_written(synthetic: Made) -> None:
    again = ("study.yaml", "--system", "/on/this/machine/small.yaml", "--results", "/on/this/machine/there")
    text = body(paper(replace(synthetic, again=again)))
    for said in (
        "run study.yaml --system small.yaml --results there",
        "report study.yaml --results there --format paper",
    ):
        assert latex(f"transect {said}") in text


def test_methods_are_those_that_the_records_came_under(tmp_path: Path) -> None:
    told = [{"warmup_steps": steps} for steps in (10, 5, ["foreign"])]
    records = [make_record(train_cell(repeat=repeat), {"step_time": 1e-3}, details=told[repeat]) for repeat in range(3)]
    write_records(tmp_path / "trained", *records)
    text = body(paper(make_all(tmp_path / "trained", title="x")))
    part = text.partition(r"\section{Methods}")[2].partition(r"\section{Results}")[0]
    assert "Kinds of training" in part and "1 cell with a right result, each 3 times." in part
    assert "The first 5 and 10 steps enter no median." in part
    assert "Classifiers of tickets" not in part and "Runtimes" not in part and r"\cite{holm1979}" not in part


def test_methods_count_the_pairs_that_the_questions_ask_for(synthetic: Made) -> None:
    every = list(synthetic.context.contrasts)
    asked = sum(contrast.asked for contrast in every)
    assert 0 < asked < len(every)
    assert f"{len(every)} comparisons of planned pairs, {asked} of which the questions ask for: " in body(
        paper(synthetic)
    )


def test_every_work_of_a_method_is_named_by_the_methods() -> None:
    told = " ".join(text for _, _, text in methods._RULES) + methods._LEAD
    assert len(method_works()) == 6
    assert [phrase for phrase in method_works() if phrase not in told] == []


def test_the_draft_of_a_small_study(tmp_path: Path, snapshot: Any) -> None:
    ran = provenance("torch", libraries={"torch": "2.1"})
    records = [
        make_record(train_cell("torch", repeat=n), {"step_time": 1e-3 + n * 1e-5}, provenance=ran) for n in range(3)
    ]
    write_records(tmp_path / "small", *records)
    contents = paper(
        make_all(tmp_path / "small", title="Small", questions=["What & why?"], only=("methods", "failures"))
    )
    check_whole(contents)
    assert body(contents) == snapshot(name="paper.tex")
    bib = contents.files["references.bib"].decode().replace(f"version {__version__} ", "version VERSION ")
    assert bib == snapshot(name="references.bib")


@pytest.mark.env
@pytest.mark.skipif(not all(map(shutil.which, ("pdflatex", "bibtex"))), reason="no pdflatex and bibtex here")
def test_drafts_compile(drafts: dict[str, Contents], tmp_path: Path) -> None:
    for name, contents in drafts.items():
        folder = tmp_path / name.replace(" ", "-")
        for path, data in contents.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        latex_run = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-draftmode", "paper"]
        # References are found in the third run: one draft has all kinds of them.
        whole = name == "hostile"
        for command in (latex_run, ["bibtex", "paper"], *([latex_run, latex_run] if whole else [])):
            ran = subprocess.run(command, cwd=folder, capture_output=True, timeout=600, check=False)
            assert ran.returncode == 0, f"{name}: {ran.stdout[-2000:]!r}"
        assert not whole or b"undefined" not in ran.stdout.replace(b"\n", b"")
