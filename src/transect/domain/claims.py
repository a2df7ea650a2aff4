"""Published claims as data: what a work says, what measures it here, and the rule that decides, fixed before the run.

One file per work, `config/claims/NAME.yaml`, or a file of the user's own. `transect.analysis.claims` decides them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from transect.domain.files import canonical_json, digest
from transect.domain.metrics import METRICS, Nature
from transect.domain.study import NAME, Section

Text = Annotated[str, Field(min_length=1)]
# What a condition is, in the order in which pages list them.
CONDITIONS = ("hardware", "interconnect", "versions", "data", "hyper-parameters", "ranks", "timed")
NOT_REPORTED = "not reported"
# As far as the work was read: it may stand there.
NOT_NOTED = "not noted"
SAME = "same"


class Kind(StrEnum):
    """What a claim is about."""

    VALUE = "value"
    RATIO = "ratio"
    ORDER = "order"
    SHAPE = "shape"
    NO_EFFECT = "no effect"


# Which tests can decide which kind.
TESTS = {
    Kind.VALUE: ("within", "at least"),
    Kind.RATIO: ("within", "at least"),
    Kind.ORDER: ("order",),
    Kind.SHAPE: ("within",),
    Kind.NO_EFFECT: ("within",),
}


class Rule(Section):
    """What decides a claim.

    `within`: the interval of what is measured lies within the published number divided and multiplied by `factor`
    (equivalence, two one-sided tests). `at least`: its lower end is not below the published number divided by `factor`
    (one-sided, as MLPerf holds a submission to its reference curve). `order`: each pair of the published
    numbers that is further apart than `factor` is shown in that order, Holm-corrected.
    """

    test: Literal["within", "at least", "order"] = Field(description="within, at least or order")
    factor: float = Field(ge=1, description="how many times off still counts as the published number")


class Along(Section):
    """The axis along which an order or a shape is measured."""

    axis: Text = Field(description="an axis of the cells, such as `ranks`")
    values: list[Any] = Field(
        default=[], description="its values here, in the order of the published numbers; empty: those of `published`"
    )


class Condition(Section):
    """One condition of a measurement, there and here."""

    there: Text = Field(description=f"what the work says; `{NOT_REPORTED}`, or `{NOT_NOTED}` where nobody looked")
    here: Text | None = Field(
        default=None, description=f"`{SAME}`, or what it is here; without it the records tell, as far as they do"
    )


class Measured(Section):
    """Which cells of which study measure a claim."""

    study: Annotated[str, Field(pattern=NAME)] = Field(
        description="the study whose cells they are; `transect replicate` runs it"
    )
    stage: Text = Field(default="train", description="their stage")
    metric: str = Field(default="", description="what is compared; the medians' ratio, where a claim is one")
    cells: dict[str, Any] = Field(
        default={},
        description="axes and their values: one, a list of several, a pattern such as `mpi-*`, or `{not: ...}`; "
        "of several cells the one with the best median is meant",
    )
    over: dict[str, Any] = Field(default={}, description="the axes in which the cells that it is compared with differ")
    equal: list[str] | None = Field(
        default=None, description="axes that both have alike; null: all that neither `cells` nor `over` names"
    )
    along: Along | None = Field(default=None, description="of an order or a shape: along which axis")
    parameters: dict[str, Any] = Field(
        default={}, description="hyper-parameters that records must state so: other ones are other work"
    )
    replicas: int = Field(
        default=0, ge=0, description="not 0: the simulator's speed-up of so many replicas over one, an extrapolation"
    )

    @field_validator("cells", "over")
    @classmethod
    def _selectors(cls, given: dict[str, Any]) -> dict[str, Any]:
        for axis, value in given.items():
            if isinstance(value, dict) and value.keys() != {"not"}:
                raise ValueError(f"{axis}: {value}: expected a value, a list of several, or {{not: ...}}")
        return given


class Claim(Section):
    """One published claim."""

    key: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")] = Field(description="its name, unique within the work")
    says: Text = Field(description="the claim as one plain sentence")
    quote: str = Field(default="", description="a short quotation")
    where: Text = Field(description="where it stands, such as `abstract` or `table 4.2`")
    doubt: str = Field(default="", description="why the claim is doubtful, where this experiment settles a doubt")
    kind: Kind = Field(description="value, ratio, order, shape or no effect")
    published: float | list[float] | dict[float, float] | None = Field(
        default=None,
        description="the number; of a ratio how many times better `cells` are than `over`; numbers in the order of "
        "`along`, or by its values",
    )
    unit: str = Field(default="", description="of the number, where it is a value")
    n: int | None = Field(default=None, ge=1, description="of how many runs; null: not given")
    spread: str = Field(default="", description="their spread, as published; empty: not given")
    anchor: float | None = Field(
        default=None,
        description="of a shape: the value of `along` to which both are scaled; its numbers are times, of which less is better",
    )
    rule: Rule | None = Field(default=None, description="what decides; none where the claim cannot be compared")
    conditions: dict[Literal[CONDITIONS], Condition] = Field(default={}, description="in the place of the work's")  # type: ignore[valid-type]
    measured: list[Measured] = Field(default=[], description="cells that measure it, the first that ran first")
    not_comparable: str = Field(default="", description="why no cells of this machine can speak to it")
    why_apart: list[str] = Field(default=[], description="rules of the report whose findings may explain a difference")

    @model_validator(mode="after")
    def _whole(self) -> Claim:
        if self.not_comparable:
            if self.measured or self.rule:
                raise ValueError(
                    f"claim {self.key}: `not_comparable` beside `measured` or `rule`: expected one of them"
                )
            return self
        if self.rule is None or self.published is None:
            raise ValueError(f"claim {self.key}: expected `rule` and `published`, or `not_comparable`")
        if self.rule.test not in TESTS[self.kind]:
            expected = " or ".join(TESTS[self.kind])
            raise ValueError(
                f"claim {self.key}: rule.test `{self.rule.test}`: of a claim of kind {self.kind} expected {expected}"
            )
        series = self.kind in (Kind.ORDER, Kind.SHAPE)
        numbers = self.numbers
        if series != (not isinstance(self.published, float)) or (series and len(numbers) < 2):
            expected = "two numbers or more" if series else "one number"
            raise ValueError(f"claim {self.key}: published: of a claim of kind {self.kind} expected {expected}")
        if any(not math.isfinite(number) or number <= 0 for number in numbers):
            raise ValueError(f"claim {self.key}: published: expected numbers above 0")
        if self.kind is Kind.NO_EFFECT and numbers != [1.0]:
            raise ValueError(f"claim {self.key}: published: of no effect expected 1")
        if self.kind is Kind.SHAPE and not (isinstance(self.published, dict) and self.anchor in self.published):
            raise ValueError(f"claim {self.key}: anchor: expected one of the values in `published`")
        if self.kind is Kind.ORDER and max(numbers) <= min(numbers) * self.rule.factor:
            raise ValueError(f"claim {self.key}: published: no two numbers are further apart than the rule's factor")
        for place, measured in enumerate(self.measured):
            self._check(measured, f"claim {self.key}: measured.{place}", series)
        return self

    def _check(self, measured: Measured, where: str, series: bool) -> None:
        if measured.replicas:
            if self.kind is not Kind.RATIO or measured.cells or measured.metric:
                raise ValueError(f"{where}.replicas: expected a ratio, and neither `cells` nor `metric` beside it")
            return
        if not measured.metric:
            raise ValueError(f"{where}: expected `metric`")
        if series != (measured.along is not None):
            raise ValueError(
                f"{where}.along: expected {'an axis' if series else 'none'} of a claim of kind {self.kind}"
            )
        if (self.kind in (Kind.RATIO, Kind.NO_EFFECT)) != bool(measured.over):
            raise ValueError(f"{where}.over: expected axes of a ratio or of no effect, and of no other kind")
        if measured.along is not None:
            values = self.axis_of(measured)
            if len(values) != len(self.numbers) or len({*map(str, values)}) < len(values):
                numbers = f"{len(self.numbers)} published numbers"
                raise ValueError(f"{where}.along.values: {values} for {numbers}: expected as many, each once")

    @property
    def numbers(self) -> list[float]:
        """The published numbers, in their order."""
        if self.published is None:
            return []
        if isinstance(self.published, dict):
            return list(self.published.values())
        return list(self.published) if isinstance(self.published, list) else [self.published]

    @property
    def axis_values(self) -> list[Any]:
        """The values of the axis that the published numbers are by; whole ones as whole numbers."""
        if not isinstance(self.published, dict):
            return []
        return [int(value) if value == int(value) else value for value in self.published]

    def axis_of(self, measured: Measured) -> list[Any]:
        """The values of `along` here, one for each published number."""
        return (measured.along.values if measured.along else []) or self.axis_values

    @property
    def rule_hash(self) -> str:
        """Twelve hexadecimal digits of what decides: an edit of the rule, the numbers or the cells changes them."""
        told = self.model_dump(mode="json", include={"kind", "anchor", "rule", "measured"}, exclude_defaults=True)
        return digest([canonical_json([told, self.numbers, self.axis_values])])[:12]


class Work(Section):
    """A published work and its claims: one file."""

    title: Text = Field(description="its title")
    short: Text = Field(description="what reports call it, such as `S-Caffe`")
    cite: Text = Field(description="authors, place, year, DOI")
    hardware: Text = Field(description="what is needed to decide all of it: laptop, one GPU, or cluster, and why")
    conditions: dict[Literal[CONDITIONS], Condition] = Field(description="what it was measured under, and here")  # type: ignore[valid-type]
    claims: list[Claim] = Field(min_length=1, description="its claims")

    @field_validator("claims")
    @classmethod
    def _once(cls, claims: list[Claim]) -> list[Claim]:
        keys = [claim.key for claim in claims]
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise ValueError(f"claims: {', '.join(twice)} stands there twice")
        return claims

    @property
    def studies(self) -> list[str]:
        """The studies whose cells measure its claims, in the order in which they are named."""
        return list(dict.fromkeys(measured.study for claim in self.claims for measured in claim.measured))

    def conditions_of(self, claim: Claim) -> Mapping[str, Condition]:
        """The conditions of a claim: its own before the work's, in the order of `CONDITIONS`."""
        known = {**self.conditions, **claim.conditions}
        return {name: known[name] for name in CONDITIONS if name in known}


def of_study(work: Work, claim: Claim, study: str) -> list[Measured]:
    """Return what measures a claim in a study; in one that the work does not name, all that may."""
    return [measured for measured in claim.measured if measured.study == study or study not in work.studies]


def rule_id(work: Work, claim: Claim) -> str:
    """Return what a study's list of rules calls this one: an edit makes it another one."""
    return f"{work.short}/{claim.key}/{claim.rule_hash}"


def takes_time(claim: Claim, measured: Measured) -> bool:
    """Whether processes that share cores change what is measured: all but a value that is no speed."""
    return claim.kind is not Kind.VALUE or METRICS[measured.metric].nature is Nature.SPEED
