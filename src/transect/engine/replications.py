"""Reading and writing replications: the results of a work's studies, here and of other machines, as one page and its data."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from transect.analysis.claims import Verdict
from transect.analysis.load import load_records
from transect.analysis.result_sets import measured
from transect.domain.claims import Claim, Work
from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.domain.paths import StudyPaths
from transect.engine.make_report import read_study, run_words
from transect.engine.plan_files import fixed_rules, planned_study
from transect.engine.result_folders import find_runs, letter_of
from transect.planning.study import named_file
from transect.report.engine.crate import METADATA
from transect.report.replication.badge import badge
from transect.report.replication.facts import replication_facts
from transect.report.replication.held import Elsewhere, Held, Ran, Replication, held
from transect.report.replication.index import DATA, PAGE, index_page, listed
from transect.report.replication.page import replication_page

FOLDER, INDEX, BADGE = "replications", "index.html", "badge.svg"
_DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"'<>]+")
_TIME = re.compile(r"\b(?:seconds?|minutes?|hours?)\b", re.IGNORECASE)


def paths_of(folder: Path) -> StudyPaths:
    """Return the paths of a study's folder."""
    real = folder.resolve()
    return StudyPaths(results=real.parent, study=real.name)


def read_run(paths: StudyPaths, work: Work) -> Ran:
    """Read the results of a study for a work. Raises BadInput where there is no plan, or no record at all."""
    study = planned_study(paths).name
    made = read_study(paths, [work])
    if not made.context.records:
        raise BadInput(f"{paths.folder}: no records there")
    crate = paths.folder / METADATA
    return Ran(
        study=study,
        folder=paths.folder,
        context=made.context,
        findings=made.findings,
        fixed=fixed_rules(paths),
        crate=crate if crate.is_file() else None,
        doi=doi_of(crate),
    )


def doi_of(crate: Path) -> str:
    """Return the DOI that a crate names as its own; empty where there is no crate, or none in it."""
    try:
        entities = json.loads(crate.read_text(encoding="utf-8"))["@graph"]
        (root,) = [entity for entity in entities if entity.get("@id") == "./"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    named = (_DOI.search(json.dumps(root.get(key, ""))) for key in ("identifier", "cite-as"))
    return next((found[0] for found in named if found), "")


def time_said(study: str) -> str:
    """Return what the comment at the head of a shipped study says of how long it takes; empty where it says nothing."""
    file = named_file("study", study)
    if file is None:
        return ""
    head = re.match(r"(?:#.*\n)*", file.read_text(encoding="utf-8"))
    lines = [line.removeprefix("#").strip() for line in head[0].splitlines()] if head else []
    text = " ".join(line for line in lines if not line.startswith("make "))
    return " ".join(one for one in re.split(r"(?<=[.!?])\s+", text) if _TIME.search(one))


def replication(
    name: str,
    work: Work,
    results: Path,
    *,
    others: Sequence[Path] = (),
    troubles: Iterable[tuple[str, str]] = (),
    again: str = "",
) -> Replication:
    """Read all that a work is decided by. `troubles`: studies that could not be planned or run, and why.

    Raises BadInput for a folder of other results that cannot be used.
    """
    runs, found = [], dict(troubles)
    for study in work.studies:
        paths = StudyPaths(results=results, study=study)
        if not paths.folder.is_dir():
            found.setdefault(study, "it has not run here")
            continue
        try:
            runs.append(read_run(paths, work))
        except BadInput as error:
            found.setdefault(study, str(error))
    return Replication(
        name=name,
        work=work,
        claims=held(work, runs),
        runs=runs,
        troubles=[*found.items()],
        elsewhere=_elsewhere(work, others, runs),
        again=again or name,
        times={study: time_said(study) for study in found},
    )


def _elsewhere(work: Work, folders: Sequence[Path], own: Sequence[Ran]) -> list[Elsewhere]:
    """Read the results of other machines, one for each folder that is given."""
    seen = {ran.folder.resolve(): "the results here" for ran in own}
    made: list[Elsewhere] = []
    known: list[tuple[str, Sequence[Ran]]] = []
    for place, given in enumerate(folders):
        found, again = find_runs([given])
        for run in (*again, *found):
            if run in again or run.resolve() in seen:
                raise BadInput(f"{given}: {run} is the same folder as {seen.get(run.resolve(), 'another one there')}")
        seen |= {run.resolve(): f"one of {given}" for run in found}
        runs = [read_run(paths_of(run), work) for run in found if _name_of(run) in work.studies]
        if not runs:
            studies = ", ".join(sorted({_name_of(run) for run in found}))
            raise BadInput(
                f"{given}: has results of {studies}, and {work.short} is measured by {', '.join(work.studies)}: expected one of these"
            )
        twice_in = sorted({ran.study for ran in runs if sum(ran.study == other.study for other in runs) > 1})
        if twice_in:
            raise BadInput(f"{given}: holds several results of {', '.join(twice_in)}: expected those of one machine")
        _refuse_copies(given, runs, [("the results here", own), *known])
        known.append((str(given), runs))
        made.append(Elsewhere(letter=letter_of(place), folders=found, runs=runs, claims=held(work, runs)))
    return made


def _refuse_copies(given: Path, runs: Sequence[Ran], known: Iterable[tuple[str, Sequence[Ran]]]) -> None:
    """Raise BadInput for runs that are a copy of others: they are no second machine's."""
    mine = {measured(record) for ran in runs for record in ran.context.records if record.metrics}
    for name, others in known:
        if any(measured(record) in mine for ran in others for record in ran.context.records if record.metrics):
            raise BadInput(f"{given}: holds the same runs as {name}: expected those of another machine or day")


def _name_of(run: Path) -> str:
    try:
        return planned_study(paths_of(run)).name
    except BadInput:
        names = {record.study for record in load_records(run.resolve()).records}
        return min(names, default=run.name)


def refuse_edited(made: Replication, file: Path, results: Path) -> None:
    """Raise BadInput for rules that were edited after the cells ran that they would judge."""
    edited = [one for one in made.claims if one.rewritten]
    if not edited:
        return
    told = "; ".join(
        f"{one.claim.key} (its rule was another one since {one.rewritten}, and is {one.claim.rule_hash} "
        f"{'since ' + str(one.fixed['since']) if 'since' in one.fixed else 'in the file only'})"
        for one in edited
    )
    again = list(dict.fromkeys(_again(one, results) for one in edited))
    raise BadInput(
        f"{file}: rules were edited after the runs that they would judge: {told}: restore them, or run the cells anew under the "
        f"rules of today: {'; '.join(again)}; nothing was written"
    )


def _again(one: Held, results: Path) -> str:
    stages = dict.fromkeys(group.cell.stage for group in one.decided.groups)
    study, *options = run_words(StudyPaths(results=results, study=one.ran.folder.name if one.ran else ""))
    return shlex.join(["transect", "run", study, *stages, "--force", *options])


def unfixed(made: Replication) -> list[Claim]:
    """Return the claims whose rules nobody had noted before their cells ran."""
    return [one.claim for one in made.claims if one.decided.edited and one.decided.verdict is Verdict.OPEN]


def page_of_work(name: str, results: Path) -> Path:
    """Return where the page of a work lies."""
    return results / FOLDER / name / PAGE


def check_place(name: str, work: Work, results: Path) -> None:
    """Raise BadInput where the page of another work of that name lies."""
    file = page_of_work(name, results).with_name(DATA)
    try:
        other = json.loads(file.read_text(encoding="utf-8"))["title"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if other != work.title:
        raise BadInput(
            f"{file.parent}: holds the page of '{other}', another work of that name: give one of them another name"
        )


def write_replication(made: Replication, results: Path) -> Path:
    """Write the page and its data, then the index of all; return the page. Each file is whole or as it was."""
    folder = results / FOLDER / made.name
    page = replication_page(made)
    data = json.dumps(replication_facts(made), indent=1, ensure_ascii=False) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / DATA, data.encode("utf-8", "replace"))
    write_atomic(folder / BADGE, badge(made.counts))
    write_atomic(folder / PAGE, page)
    write_index(results)
    return folder / PAGE


def write_index(results: Path) -> tuple[Path, list[str]]:
    """Write the index of all replications; return it, and what is wrong with those that are damaged."""
    works = listed(results / FOLDER)
    file = results / FOLDER / INDEX
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, index_page(works))
    return file, [f"{results / FOLDER / work.name}: {work.why}" for work in works if work.why]
