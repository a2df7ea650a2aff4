"""The published works that a study is held beside: found by name or path, checked against what the stages know."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from transect.domain.cell import OpenCell, class_of
from transect.domain.claims import Claim, Kind, Measured, Work
from transect.domain.errors import BadInput, unknown_name
from transect.domain.metrics import METRICS
from transect.domain.strict_yaml import load_model
from transect.domain.study import Study
from transect.planning.context import Context
from transect.planning.stage import STAGES
from transect.planning.study import named_file, names_of

# From here on two names are one and a slip of the pen.
_NEAR = 0.85


def find_work(given: str, beside: Path | None = None) -> tuple[str, Path]:
    """Return a work's name and file: one of `config/claims`, or a file beside the study's. Raises BadInput for neither."""
    if given.endswith((".yaml", ".yml")):
        path = (beside.parent if beside else Path()) / given
        if not path.is_file():
            raise BadInput(f"{beside or 'claims'}: claims: {path}: no such file")
        return path.stem, path.resolve()
    found = named_file("work", given)
    if found is None:
        raise unknown_name("work", given, names_of("work"), f"{beside}: claims" if beside else "")
    return given, found


def works_of(study: Study, file: Path) -> dict[str, Work]:
    """Return the works that a study names, by their names. Raises BadInput for one that is not there."""
    return {name: load_model(path, Work) for name, path in (find_work(given, file) for given in study.claims)}


def check_claims(context: Context) -> None:
    """Note claims that are held beside a stage, a metric or an axis that is not there."""
    works: dict[str, Work] = {}
    for given in context.study.claims:
        with context.complaints.noted():
            name, path = find_work(given, context.file)
            if name in works:
                raise BadInput(f"{context.file}: claims: {name} stands there twice")
            works[name] = load_model(path, Work)
    for name, work in works.items():
        for claim in work.claims:
            for measured in claim.measured:
                with context.complaints.noted():
                    check_measured(claim, measured, f"{name}: claim {claim.key}")


def check_measured(claim: Claim, measured: Measured, where: str) -> None:
    """Raise BadInput for a stage, a metric or an axis that is not there."""
    if measured.replicas:
        return
    if measured.stage not in STAGES:
        raise unknown_name("stage", measured.stage, STAGES, where)
    if measured.metric not in METRICS:
        raise unknown_name("metric", measured.metric, METRICS, where)
    unit = METRICS[measured.metric].unit
    if claim.kind is Kind.VALUE and claim.unit not in ("", unit):
        raise BadInput(f"{where}: unit '{claim.unit}': expected that of {measured.metric}, '{unit}'")
    kind = class_of(measured.stage)
    if kind is OpenCell:  # a stage of a plug-in that does not say which axes it has
        return
    axes = sorted(kind.model_fields.keys() - {"stage"})
    along = [measured.along.axis] if measured.along else []
    for name in (*measured.cells, *measured.over, *(measured.equal or ()), *along):
        # `ranks` follows from two axes, and can be asked for as they can.
        if name in kind.model_fields or isinstance(getattr(kind, name, None), property):
            continue
        # Among options any name may be one: what is nearly an axis is a slip.
        if "options" not in kind.model_fields or get_close_matches(name, axes, 1, _NEAR):
            raise unknown_name(f"axis of {measured.stage}", name, axes, where)
