"""The page of a replication: what became of a work's claims, then each of them with all that its verdict rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from markupsafe import Markup

from transect.analysis.claims import Point, Verdict
from transect.analysis.entries import moment_of
from transect.domain.claims import Kind, Rule
from transect.domain.metrics import METRICS
from transect.report.comparison.page import Unmade, made_sections, page_of
from transect.report.engine.blocks import (
    Chart,
    Charts,
    Chip,
    Column,
    Facts,
    Heading,
    Lead,
    Part,
    Prose,
    Value,
    code,
    digits,
    note,
    table,
    words,
)
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.theme import Style
from transect.report.engine.text import clean, clipped, count, number, with_ends
from transect.report.replication.again import again_of
from transect.report.replication.badge import badge_words
from transect.report.replication.held import OWN_CODE, Held, Replication
from transect.report.topics.claims.conditions import DIFFERS, UNKNOWN, machine_text, rows_of
from transect.report.topics.claims.findings import TONES, gap_words, here_words, published_words, verdict_chip

_HERE = Style("#0072b2", "circle")
INDEX = "../index.html"
_NOT_GIVEN = "not given"
# Whose results, their machine, their day, their claims.
_Row = tuple[str, str, str, Sequence[Held]]


def replication_page(made: Replication) -> bytes:
    """Return `replication.html`."""
    sections: list[Unmade] = [("verdict", "What became of the claims", partial(_overview, made))]
    sections += [(f"claim-{held.claim.key}", held.claim.key, partial(_claim, made, held)) for held in made.claims]
    sections += [("who", "Who ran it", partial(_who, made)), ("again", "Run it again", partial(_again, made))]
    counts = [(word, amount) for word, amount in made.counts.items() if amount]
    drawn = made_sections(sections, drawn=True)
    return page_of(
        drawn,
        kind="replication",
        title=f"{made.work.short}: {made.said}",
        about=[OWN_CODE, made.work.title, made.work.cite],
        chips=[Chip(f"{word}: {amount}", TONES.get(Verdict(word), "plain")) for word, amount in counts],
        home=INDEX,
        home_name="All works",
        opened=len(drawn),
    )


def _overview(made: Replication) -> Iterator[Part]:
    yield Lead(
        f"{made.said[:1].upper()}{made.said[1:]}. {OWN_CODE} Each claim is decided by a rule that was fixed before the cells ran; "
        "one whose rule is younger stays open."
    )
    yield table(
        made.claims,
        [
            words("Claim", lambda held: Markup('<a href="#claim-{0}">{0}</a>').format(held.claim.key)),
            words("Says", lambda held: clean(held.claim.says)),
            words("Published", lambda held: published_words(held.claim)),
            words("Measured here", lambda held: here_words(held.decided.points) or "–"),
            words("Verdict", lambda held: verdict_chip(held.decided)),
            digits("Conditions not known", lambda held: sum(row.state in UNKNOWN for row in rows_of(held.decided))),
        ],
        caption="Claims",
        most=len(made.claims),
        about=lambda held: held.decided.groups,
    )
    if made.troubles:
        yield table(
            made.troubles,
            [
                words("Study", lambda row: clean(row[0])),
                words("Why it gives nothing", lambda row: clipped(row[1], 400)),
            ],
            caption="Studies without results",
            about=lambda row: None,
        )


def rule_words(rule: Rule, kind: Kind) -> str:
    """Say in words what decides."""
    off = f"a factor of {rule.factor:g}"
    if rule.test == "order":
        beyond = f" that are further apart than {off}" if rule.factor > 1 else ""
        return f"all pairs of published numbers{beyond} are shown in that order, corrected for how many they are"
    what = "every point" if kind is Kind.SHAPE else "what is measured"
    if rule.test == "at least":
        return f"the lower end of the interval of {what} is not below the published number by more than {off}"
    return f"the whole interval of {what} is within {off} of the published number"


def _claim(made: Replication, held: Held) -> Iterator[Part]:
    claim, decided = held.claim, held.decided
    yield Lead(clean(claim.says))
    yield Facts(items=list(_facts(held)))
    yield _chart(held)
    yield Heading("What differs")
    rows = rows_of(held.decided)
    tones = {DIFFERS: "warn", "same": "good"}
    yield table(
        rows,
        [
            words("What", lambda row: row.what),
            words("There", lambda row: clean(row.there)),
            words("Here", lambda row: clean(row.here)),
            words("Beside each other", lambda row: Chip(row.state, tones.get(row.state, "plain"))),
        ],
        about=lambda row: None,
    )
    if decided.verdict in (Verdict.DIRECTION, Verdict.FAILS):
        yield Heading("Why apart, as far as records show")
        found = held.why_apart
        for finding in found:
            yield Prose(clean(finding.text))
        if not found:
            yield note("No finding of these records explains it.")
    if claim.doubt:
        yield Heading("The doubt")
        yield Prose(clean(claim.doubt))
    if (again := again_of(made, held)) is not None:
        locks = [f"{name} {', '.join(found)}" for name, found in again.environments.items()]
        described = [*([f"crate {again.crate}"] if again.crate else []), *([f"DOI {again.doi}"] if again.doi else [])]
        yield Heading("Run this again")
        yield Facts(
            items=[
                ("Command", clean(again.command)),
                ("Time", clean(again.time)),
                ("Hardware", f"{again.tier}, by {again.tier_of}"),
                ("Environments", clean("; ".join(locks)) or "none is noted: no cell of it ran here"),
                (
                    "Described for others",
                    clean("; ".join(described)) or "not yet: transect crate writes it, and no DOI is named",
                ),
            ]
        )


def _facts(held: Held) -> Iterator[tuple[str, Value]]:
    claim, decided = held.claim, held.decided
    yield "Verdict", verdict_chip(decided)
    yield "Because", clean(decided.reason)
    if claim.quote:
        yield "Quotation", f"“{clean(claim.quote)}” ({clean(claim.where)})"
    else:
        yield "Where it stands", clean(claim.where)
    yield "Published", published_words(claim)
    yield "Their runs", str(claim.n) if claim.n else _NOT_GIVEN
    yield "Their spread", clean(claim.spread) or _NOT_GIVEN
    if claim.rule:
        yield "Rule", rule_words(claim.rule, claim.kind)
        yield "Rule fixed", _fixed(held)
    if gap := gap_words(decided):
        yield "Power", gap
    if decided.points:
        yield "Measured by", f"{held.ran.study}: " + clipped("; ".join(_compared(held)), 300) if held.ran else ""


def _compared(held: Held) -> list[str]:
    return list(dict.fromkeys(point.compared for point in held.decided.points if point.compared))


def _fixed(held: Held) -> str:
    since, commit = held.fixed.get("since"), held.fixed.get("commit")
    moment = moment_of(str(since)) if since else None
    when = f"since {moment:%Y-%m-%d %H:%M} UTC" if moment else "nobody noted when"
    dirty = " with edits" if held.fixed.get("dirty") else ""
    return f"{when}{f' at commit {str(commit)[:12]}{dirty}' if commit else ''}; its hash is {held.claim.rule_hash}"


def _axis(held: Held) -> str:
    if held.claim.kind is Kind.RATIO or held.claim.kind is Kind.NO_EFFECT:
        return "times as good"
    if held.claim.kind is Kind.SHAPE:
        return "beside the anchor"
    measured = held.decided.measured
    metric = METRICS.get(measured.metric) if measured else None
    return f"{metric.name.replace('_', ' ')} ({held.claim.unit or metric.unit})" if metric else "value"


def _chart(held: Held) -> Part:
    """Draw published numbers on the axis of all samples; a row for each."""
    points = [point for point in held.decided.points if point.here is not None]

    def dot(point: Point) -> Dot:
        here = point.here
        assert here is not None
        finite = all(map(math.isfinite, (here.low, here.high)))
        return Dot(
            label=point.label or "measured here",
            value=here.value,
            style=_HERE,
            low=here.low if finite else None,
            high=here.high if finite else None,
            points=point.samples,
            bound=point.published,
            right=number(here.value),
            hollow=held.decided.verdict is Verdict.OPEN,
            ends=here.word,
            count=len(point.samples) or None,
            about=held.decided.groups,
        )

    drawn = dot_chart(
        points,
        dot,
        [
            words("What", lambda point: point.label or "measured here"),
            digits("Published", lambda point: point.published),
            words("Measured here", lambda point: with_ends(point.here)),
            digits("Samples", lambda point: len(point.samples)),
            code("Cells", lambda point: clean(point.compared)),
        ],
        title=f"Claim {held.claim.key}: published and measured",
        axis=_axis(held),
        name=f"claim-{held.claim.key}-chart",
        cut="others",
        # Of ratios, so that those near 1 are not one dot.
        log=True if held.claim.kind in (Kind.RATIO, Kind.NO_EFFECT, Kind.SHAPE) else None,
        notes=["The upright mark is the published number, dots are the samples, the line is the interval."],
    )
    # As charts and not as one: a single row too is drawn, as the published number beside the samples is the point of it.
    return Charts(items=[drawn]) if isinstance(drawn, Chart) else None


def _who(made: Replication) -> Iterator[Part]:
    if not made.elsewhere:
        return
    yield Lead("The same claims by the results of other machines, each decided by its own cells.")
    own: _Row = ("here", machine_text(made.machine), made.day, made.claims)
    rows = [own, *((other.letter, machine_text(other.machine), other.day, other.claims) for other in made.elsewhere)]
    columns: list[Column[_Row]] = [
        words("Results", lambda row: row[0]),
        words("Machine", lambda row: clean(row[1])),
        words("Day", lambda row: row[2]),
    ]
    columns += [words(held.claim.key, partial(_verdict_at, place)) for place, held in enumerate(made.claims)]
    yield table(rows, columns, caption="Who ran it", about=lambda row: None)


def _verdict_at(place: int, row: _Row) -> Chip:
    return verdict_chip(row[3][place].decided)


def _again(made: Replication) -> Iterator[Part]:
    yield Lead("What it takes to run it again.")
    crates = [ran for ran in made.runs if ran.crate is not None]
    missing = [ran for ran in made.runs if ran.crate is None]
    items: list[tuple[str, Value]] = [
        ("Command", f"transect replicate {made.again}"),
        ("Time", f"{number(made.minutes)} minutes of cells, one after another, on this machine"),
        ("Hardware", clean(made.work.hardware)),
        (
            "Studies",
            ", ".join(f"{ran.study} ({count(len(ran.context.records), 'record')})" for ran in made.runs) or "none",
        ),
    ]
    items.append(("Badge", f"badge.svg beside this page: replicated: {badge_words(made.counts)}"))
    items += [("Crate", f"{ran.crate}: the results of {ran.study} described for others") for ran in crates]
    items += [("Crate", f"transect crate {ran.folder} writes it for {ran.study}") for ran in missing]
    yield Facts(items=items)
