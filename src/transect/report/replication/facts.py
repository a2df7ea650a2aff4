"""What a replication found, as data: `replication.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from transect.analysis.claims import Point
from transect.report.replication.again import again_of
from transect.report.replication.badge import badge_words
from transect.report.replication.held import OWN_CODE, Elsewhere, Held, Replication
from transect.report.topics.claims.conditions import rows_of

SCHEMA_VERSION = 2


def replication_facts(made: Replication) -> dict[str, Any]:
    """Return all that the page says as data; equal results give equal data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "name": made.name,
        "title": made.work.title,
        "short": made.work.short,
        "cite": made.work.cite,
        "hardware_needed": made.work.hardware,
        "said": made.said,
        "note": OWN_CODE,
        "counts": made.counts,
        "day": made.day,
        "machine": made.machine,
        "minutes": round(made.minutes, 1),
        "command": f"transect replicate {made.again}",
        "badge": badge_words(made.counts),
        "claims": [_claim(held) | {"again": _again(made, held)} for held in made.claims],
        "studies": [
            {
                "study": ran.study,
                "records": len(ran.context.records),
                "minutes": round(ran.minutes, 1),
                "crate": ran.crate is not None,
                "doi": ran.doi,
            }
            for ran in made.runs
        ],
        "troubles": [{"study": study, "why": why} for study, why in made.troubles],
        "elsewhere": [_other(other) for other in made.elsewhere],
    }


def _again(made: Replication, held: Held) -> dict[str, Any] | None:
    again = again_of(made, held)
    if again is None:
        return None
    return {
        "command": again.command,
        "minutes": _number(again.minutes),
        "study_minutes": _number(again.study_minutes),
        "study_says": again.said,
        "hardware": again.tier,
        "hardware_by": again.tier_of,
        "environments": {name: [*locks] for name, locks in again.environments.items()},
        "crate": again.crate,
        "doi": again.doi,
    }


def _other(other: Elsewhere) -> dict[str, Any]:
    return {
        "letter": other.letter,
        "machine": other.machine,
        "day": other.day,
        "claims": [_claim(held) for held in other.claims],
    }


def _claim(held: Held) -> dict[str, Any]:
    claim, made = held.claim, held.decided
    return {
        "key": claim.key,
        "says": claim.says,
        "quote": claim.quote,
        "where": claim.where,
        "doubt": claim.doubt,
        "kind": str(claim.kind),
        "published": claim.numbers,
        "unit": claim.unit,
        "published_n": claim.n,
        "published_spread": claim.spread,
        "verdict": str(made.verdict),
        "firm": made.firm,
        "confidence": str(made.confidence),
        "reason": made.reason,
        "rule": claim.rule.model_dump() if claim.rule else None,
        "rule_hash": claim.rule_hash if claim.rule else None,
        "rule_since": held.fixed.get("since"),
        "rule_commit": held.fixed.get("commit"),
        "rule_younger_than_runs": made.edited,
        "gap": _number(made.gap),
        "study": held.ran.study if held.ran else None,
        "metric": made.measured.metric if made.measured else None,
        "points": [_point(point) for point in made.points],
        "conditions": [
            {"what": row.what, "there": row.there, "here": row.here, "state": row.state}
            for row in rows_of(held.decided)
        ],
        "why_apart": [{"rule": finding.rule, "text": finding.text} for finding in held.why_apart],
    }


def _point(point: Point) -> Mapping[str, Any]:
    here = point.here
    return {
        "label": point.label,
        "published": point.published,
        "here": _number(here.value) if here else None,
        "low": _number(here.low) if here else None,
        "high": _number(here.high) if here else None,
        "ends": here.word if here else None,
        "samples": [*point.samples],
        "cells": point.compared,
    }


def _number(value: float | None) -> float | None:
    """Return a number as JSON has it: no infinity."""
    return value if value is not None and math.isfinite(value) else None
