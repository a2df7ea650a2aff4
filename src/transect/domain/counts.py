"""Lists of counts in a study, some of which grow with the machine: ranks, threads, nodes, batches, sizes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, RootModel, ValidationInfo

Count = Annotated[int, Field(ge=1)]

CORES, NODES, DOUBLING = "up-to-cores", "up-to-nodes", "powers-of-two"
_Word = Literal["up-to-cores", "up-to-nodes", "powers-of-two"]
_WORDS = (DOUBLING, CORES, NODES)
_EXAMPLE = f"[1, {DOUBLING}, {CORES}] or [16, {DOUBLING}, 256]"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """How far the lists of a study grow. `cores` is None where a cluster's system file does not say how many a node has."""

    system: str
    nodes: int
    cores: int | None


def _most(word: str, machine: Machine) -> int:
    if word == NODES:
        return machine.nodes
    if machine.cores is None:
        raise ValueError(f"{word}: expected `cores_per_node` in the file of system '{machine.system}'")
    return machine.cores


def grown(given: Any, info: ValidationInfo) -> Any:
    """Return a list with numbers in the place of its words; all else is returned as it is, for the type to judge.

    `up-to-cores` and `up-to-nodes`, at the end, leave out what is more than that and add that number itself; alone
    they are all powers of two up to there as well. `powers-of-two` fills in the doublings of the number before it that are
    less than the one behind it. Without a `Machine` as context, as where nothing is planned, only the numbers are left.
    Raises ValueError for a word in another place.
    """
    if given in (CORES, NODES):
        given = [1, DOUBLING, given]
    if not _has_words(given):
        return given
    if wrong := [one for one in given if one not in _WORDS and not isinstance(one, int | None)]:
        raise ValueError(f"{wrong[0]!r}: expected whole numbers, {', '.join(_WORDS)}")
    if any(word in given[:-1] for word in (CORES, NODES)):
        raise ValueError(f"expected {CORES} or {NODES} as the last one, such as {_EXAMPLE}")
    for place, one in enumerate(given):
        around = given[max(0, place - 1) : place + 2 : 2]
        if one == DOUBLING and not (len(around) == 2 and isinstance(around[0], int) and _is_more(around[1], around[0])):
            raise ValueError(f"expected {DOUBLING} between a number and a larger one, such as {_EXAMPLE}")
    values = given
    if given[-1] in (CORES, NODES):
        values = _up_to(given, info.context)
    # A number that is also the most stands there once.
    return list(dict.fromkeys(_doubled(values)))


def _is_more(one: Any, than: int) -> bool:
    return one in (CORES, NODES) or (isinstance(one, int) and one > than)


def _has_words(given: Any) -> bool:
    return isinstance(given, list) and any(isinstance(one, str) and one in _WORDS for one in given)


def _up_to(given: list[Any], machine: Any) -> list[Any]:
    """Return the numbers up to the most that the last word stands for, and that itself."""
    if not isinstance(machine, Machine):
        return [one for one in given[:-1] if one != DOUBLING] or [1]
    most = _most(given[-1], machine)
    # A number that is too large takes the doublings behind it along.
    based = [given[place - 1] if one == DOUBLING else one for place, one in enumerate(given[:-1])]
    kept = [one for one, base in zip(given, based, strict=False) if not isinstance(base, int) or base <= most]
    return [*kept, most]


def _doubled(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for place, one in enumerate(values):
        if one != DOUBLING:
            found.append(one)
            continue
        low, high = found[-1], values[place + 1]
        found += [low << shift for shift in range(1, high.bit_length()) if low << shift < high]
    return found


_Most = Literal["up-to-cores", "up-to-nodes"]


class _Growing(RootModel[Annotated[list[Count | _Word], Field(min_length=1)] | _Most]):
    """What a study may write; a model, so that the schema holds it once."""


class _GrowingOrNull(RootModel[Annotated[list[Count | _Word | None], Field(min_length=1)] | _Most]):
    """The same with null among the numbers."""


def _counts(given: Any, info: ValidationInfo) -> Any:
    if isinstance(given, str) and given not in (CORES, NODES):
        raise ValueError(f"expected {CORES}, {NODES} or a list such as {_EXAMPLE}")
    return grown(given, info)


GrowingCounts = Annotated[list[Count], Field(min_length=1), BeforeValidator(_counts, json_schema_input_type=_Growing)]
# null stands for what the workload says.
GrowingCountsOrNull = Annotated[
    list[Count | None], Field(min_length=1), BeforeValidator(_counts, json_schema_input_type=_GrowingOrNull)
]


def _choices(value: Any, info: ValidationInfo) -> list[Any]:
    chosen = grown(value, info)
    return chosen if isinstance(chosen, list) else [chosen]


def each_choice(given: Any, info: ValidationInfo) -> Any:
    """Return mappings without lists: one that holds lists becomes one mapping for each combination of their values."""
    if not isinstance(given, list):
        return given
    found: list[Any] = []
    for one in given:
        if not isinstance(one, dict):
            found.append(one)
            continue
        lists = [_choices(value, info) for value in one.values()]
        if empty := [key for key, values in zip(one, lists, strict=True) if not values]:
            raise ValueError(f"{empty[0]}: expected at least one value")
        found += [dict(zip(one, values, strict=True)) for values in product(*lists)]
    return found


Option = int | float | str
OptionChoices = Annotated[
    list[dict[str, Option]],
    Field(min_length=1),
    BeforeValidator(each_choice, json_schema_input_type=list[dict[str, Option | list[Option]]]),
]
# Of a strategy: null is the value that its option says.
StrategyChoices = Annotated[
    list[dict[str, Option | None]],
    Field(min_length=1),
    BeforeValidator(each_choice, json_schema_input_type=list[dict[str, Option | list[Option | None] | None]]),
]
# Of a training: a value may be a mapping, such as a schedule with its options.
HyperparameterChoices = Annotated[
    list[dict[str, Option | dict[str, Any] | None]],
    Field(min_length=1),
    BeforeValidator(each_choice, json_schema_input_type=list[dict[str, Option | dict[str, Any] | list[Any] | None]]),
]
