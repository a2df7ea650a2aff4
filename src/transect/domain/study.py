"""What every study has: name, limits, hyper-parameters. Its stages add their sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from transect.domain.counts import Count as Count
from transect.domain.errors import BadInput
from transect.domain.until import Percent, RepeatUntil

# Of a study, and so of its folder.
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Names = Annotated[list[str], Field(min_length=1)]
Counts = Annotated[list[Count], Field(min_length=1)]


def typed(name_of: Callable[[str], str]) -> AfterValidator:
    """Make a list's names those that are meant by what was typed: `name_of` is a registry's `named`, or like it."""
    return AfterValidator(lambda given: given and [name_of(name) for name in given])


Containers = Annotated[
    list[str | None],
    Field(
        min_length=1,
        description="names from [plugins.md](plugins.md#container-wrapper): in an image made of the environment; null: "
        "as the system says, which is none unless it names one",
    ),
]
StageRepeatUntil = Annotated[
    RepeatUntil | None, Field(description="measure on until it is known; null: as the study's `repeat_until` says")
]
WhereItFits = Annotated[
    bool,
    Field(
        description="true: cells that need more nodes, cores or GPUs than the system has (where its file does not say: "
        "this machine) are not planned"
    ),
]


class Section(BaseModel):
    """A part of a study file: frozen, and no key is taken that it does not know.

    Every key says what it is: the documentation's tables derive from it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def check_together(section: Section, where: str, *keys: str) -> None:
    """Raise BadInput when some of these lists are empty and others are not: that gives no cell."""
    given = [key for key in keys if getattr(section, key)]
    missing = [key for key in keys if key not in given]
    if given and missing:
        raise BadInput(f"{where}.{given[0]}: gives no cell without `{missing[0]}`")


class Limits(Section):
    """What one cell may use before it is ended; an edit runs again only what it concerns."""

    seconds: float = Field(default=300, gt=0, description="wall-clock time of one cell's payload")
    memory_mb: int | None = Field(default=None, ge=16, description="resident memory of all ranks on one node")
    repeats_if_disturbed: int = Field(
        default=1, ge=0, description="how often a cell is measured again when others disturbed it"
    )
    repeat_seconds: float = Field(default=60, ge=0, description="no repeat of a payload that took longer than this")


class Question(Section):
    """A question of a study, and which rules of the report answer it."""

    ask: str = Field(min_length=1, description="the question, as the report shows it")
    answered_by: list[str] = Field(
        default=[],
        description="rules whose findings answer it, in the order in which it asks, such as `training.fastest`; "
        "`*` stands for any part of a name",
    )
    shown_in: list[str] = Field(
        default=[], description="sections that show what no rule decides, such as `conversions`"
    )


class Study(Section):
    """One study file, without the sections of its stages."""

    name: str = Field(pattern=NAME, description="names the folder `results/NAME`; no two study files share one")

    @field_validator("name")
    @classmethod
    def _not_taken(cls, name: str) -> str:
        if name == "environments":
            raise ValueError("results/environments holds what became of environments")
        if name == "replications":
            raise ValueError("results/replications holds what `transect replicate` writes")
        return name

    title: str = Field(default="", description="heading of the report; the name when empty")
    questions: list[str | Question] = Field(
        default=[],
        description="what the report is to answer, each with its answer at the report's top: a sentence, or `ask` "
        "with `answered_by`; see below",
    )
    seed: int = Field(
        default=20261120, ge=0, description="of the split, initial weights, batch order and order of cells"
    )
    plugins: list[str] = Field(default=[], description="plug-in folders, relative to the study file")
    limits: Limits = Field(default=Limits(), description="what one cell may use")
    equal_within: Percent | None = Field(
        default=None,
        description="margin within which two groups are the same, such as `5 %`; null: that of `repeat_until`, or 5 %",
    )
    repeat_until: RepeatUntil | None = Field(
        default=None,
        description="measure on until it is known, in each stage that compares its repeats; a stage's own "
        "`repeat_until` goes before it; see below",
    )
    workloads: dict[str, dict[str, Any]] = Field(
        default={}, description="hyper-parameters that replace a workload's own, by workload"
    )
    max_cells: Count = Field(
        default=100_000,
        description="more cells are refused before any is planned: a hundred thousand take a minute "
        "and gigabytes, and are mostly a slip of the pen",
    )
    claims: list[str] = Field(
        default=[],
        description="published works whose claims are held beside this study's cells: names from `config/claims`, or files "
        "relative to the study file; see [claims.md](claims.md)",
    )

    def asks(self, rules: Iterable[str]) -> bool:
        """Whether a question names one of these rules of the report; all are asked where no question names any."""
        named = [name for asked in self.questions if isinstance(asked, Question) for name in asked.answered_by]
        return not named or any(fnmatchcase(rule, name) for rule in rules for name in named)
