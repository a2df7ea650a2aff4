"""The rounds of a simulation: turns by an engine, their updates to one change, the server's step."""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from transect.domain.errors import WrongResult
from transect.federated.aggregations import Aggregation, Settings, State, Summed, Updates
from transect.federated.draws import rows_of_turns, seeds_of_turns
from transect.federated.engines import Session, Turn
from transect.federated.exact_sum import ExactSum
from transect.federated.exchange import Exchange
from transect.federated.partitions import Clients
from transect.federated.timetable import Timetable

# Turns whose rows are drawn at once, and numbers of updates that are looked at at once: memory does not grow with clients.
_TURNS, _NUMBERS = 1024, 2**18


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What is simulated: who has which rows (numbers of training rows), who trains when, and what becomes of updates.

    `trained` says which numbers of the model's vector (d,) the server's step changes: the rest, such as running
    statistics, becomes its mean. `seed` is that of rows and masks.
    """

    clients: Clients
    timetable: Timetable
    aggregation: Aggregation
    settings: Settings
    trained: np.ndarray
    seed: int
    steps: int
    batch: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Where a simulation stands before an update.

    `models`: those that its turns begin on and the newest one, (d,), by how many updates made them; `state`: what the
    aggregation keeps.
    """

    models: dict[int, np.ndarray]
    state: State


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One update of the server: the next `model` (d,), the mean loss of all steps, seconds in all and in turns.

    `before`: where the simulation stood, of those updates for which it was asked.
    """

    model: np.ndarray
    loss: float
    seconds: float
    turn_seconds: float
    before: Standing | None = None


def simulate(
    plan: Plan, start: np.ndarray, session: Session, exchange: Exchange | None = None, keep: Collection[int] = ()
) -> Iterator[Round]:
    """Yield each of the server's updates; `start` (d,) is the first model, whose precision all models have.

    Every rank yields the same models and losses. What the caller does between two updates is not timed. Updates in
    `keep` say where the simulation stood before.
    """
    exchange = exchange or Exchange()
    table = plan.timetable
    last_use = {int(version): number for number, row in enumerate(table.version) for version in row}
    models, state = {0: start}, State()
    for number in range(len(table.client)):
        needed = {number, *table.version[number].tolist()}
        before = (
            Standing(models={version: models[version] for version in needed}, state=copy.deepcopy(state))
            if number in keep
            else None
        )
        made = update(plan, number, Standing(models=models, state=state), session, exchange)
        models[number + 1] = made.model
        # Those that a later turn begins on.
        models = {known: kept for known, kept in models.items() if known > number or last_use.get(known, -1) > number}
        yield replace(made, before=before)


def update(plan: Plan, number: int, before: Standing, session: Session, exchange: Exchange) -> Round:
    """Make one update, from where a simulation stands; the aggregation's state is changed in place."""
    begin = time.perf_counter()
    given = before.models[number]
    change, losses, spent = _change(plan, number, before, session, exchange)
    now = given.astype(np.float64)
    _refuse_shape("change", change, now)
    then = now + change
    stepped = plan.aggregation.step(plan.settings, now[plan.trained], change[plan.trained], before.state)
    _refuse_shape("step", stepped, then[plan.trained])
    then[plan.trained] = stepped
    model = then.astype(given.dtype)
    return Round(model=model, loss=float(losses.mean()), seconds=time.perf_counter() - begin, turn_seconds=spent)


def _refuse_shape(what: str, made: np.ndarray, expected: np.ndarray) -> None:
    """Raise WrongResult for what would be spread over a model instead of being one."""
    if made.shape != expected.shape:
        raise WrongResult(f"`{what}` of the aggregation: expected {expected.shape}, got {made.shape}")


def _change(
    plan: Plan, number: int, before: Standing, session: Session, exchange: Exchange
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the change that an update's turns stand for, float64 (d,), their losses, and this rank's seconds in turns."""
    table, models = plan.timetable, before.models
    count = table.client.shape[1]
    staleness = number - table.version[number].astype(np.int64)
    counts = plan.clients.sizes[table.client[number]].astype(np.int64)
    losses, size = np.zeros(count), len(models[number])
    width = max(1, _NUMBERS // size)
    aggregation = plan.aggregation
    # A rule that has a `change` of its own wants to see each update, whatever it inherits.
    own = type(aggregation).change is not Summed.change
    summed = aggregation if isinstance(aggregation, Summed) and not own else None
    total = ExactSum(size) if summed else None
    weights = summed.weights(plan.settings, counts, staleness) if summed else counts
    vectors = np.empty((0, size)) if summed else np.zeros((count, size))
    current = models[number].astype(np.float64) if aggregation.from_current else None
    spent, done = 0.0, exchange.rank
    for turns in _turns(plan, number, models, range(exchange.rank, count, exchange.size)):
        begin, first = time.perf_counter(), 0
        for piece in session.turns(turns):
            spent += time.perf_counter() - begin
            several = len(piece.losses)
            places = done + exchange.size * np.arange(several)
            losses[places] = piece.losses
            for start in range(0, several, width):
                part = slice(start, start + width)
                found = piece.weights[part].astype(np.float64)
                for row, turn in zip(found, turns[first + start : first + start + width], strict=False):
                    row -= turn.given if current is None else current
                if total is not None:
                    total.add(found, weights[places[part]])
                else:
                    vectors[places[part]] = found
            done, first = done + several * exchange.size, first + several
            begin = time.perf_counter()
    losses = exchange.total(losses)
    if summed and total is not None:
        total.parts = exchange.total(total.parts)
        return summed.mean(plan.settings, total) + 0.0, losses, spent
    updates = Updates(vectors=exchange.total(vectors), counts=counts, staleness=staleness)
    return aggregation.combine(plan.settings, updates, before.state), losses, spent


def _turns(plan: Plan, number: int, models: dict[int, np.ndarray], places: range) -> Iterator[list[Turn]]:
    """Yield the turns of an update at these places, some thousands at once."""
    table, clients = plan.timetable, plan.clients
    for begin in range(0, len(places), _TURNS):
        taken = np.asarray(places[begin : begin + _TURNS])
        client, turn, version = (array[number, taken] for array in (table.client, table.number, table.version))
        starts = clients.starts[client]
        rows = rows_of_turns(plan.seed, turn, clients.sizes[client], plan.steps, plan.batch)
        rows = clients.rows[rows + starts[:, None, None]]
        seeds = seeds_of_turns(plan.seed, turn, plan.steps)
        yield [
            Turn(
                client=int(client[place]),
                number=int(turn[place]),
                given=models[int(version[place])],
                rows=rows[place],
                seeds=seeds[place],
            )
            for place in range(len(taken))
        ]
