"""The rounds of a simulation: turns by an engine, their updates to one change, the server's step."""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from transect.domain.errors import WrongResult
from transect.federated.aggregations import Aggregation, Settings, State, Summed, Updates
from transect.federated.draws import rows_of_turns, seeds_of_turns
from transect.federated.engines import Session, Turn, Turned
from transect.federated.exact_sum import ExactSum, refuse_unusable
from transect.federated.exchange import Exchange
from transect.federated.methods import Method, Terms
from transect.federated.partitions import Clients
from transect.federated.timetable import Timetable

# Turns whose rows are drawn at once, and numbers of updates that are looked at at once: memory does not grow with clients.
_TURNS, _NUMBERS = 1024, 2**18
# What clients keep where a method keeps nothing.
_NOTHING = np.empty(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What is simulated: who has which rows (numbers of training rows), who trains when, and what becomes of updates.

    The server's step changes what is trained: the rest of the model's vector (d,), such as running statistics, becomes
    its mean. `seed` is that of rows and masks.
    """

    clients: Clients
    timetable: Timetable
    aggregation: Aggregation
    settings: Settings
    method: Method
    terms: Terms
    seed: int
    batch: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Where a simulation stands before an update.

    `models`: those that its turns begin on and the newest one, (d,), by how many updates made them; `state`: what the
    aggregation keeps. `kept`: what clients keep, (d,), by client, and `server`, float64 (d,): its mean over all clients;
    both of methods that have them.
    """

    models: dict[int, np.ndarray]
    state: State
    kept: dict[int, np.ndarray] = field(default_factory=dict)
    server: np.ndarray = field(default_factory=lambda: np.empty(0))

    def whole(self, number: int, clients: Sequence[int]) -> np.ndarray:
        """Return the model before an update, and what its clients keep, in one vector."""
        return _whole(self.models[number], clients, self.kept)

    def of(self, number: int, clients: Sequence[int], versions: Collection[int]) -> Standing:
        """Return a copy of what one update takes."""
        return Standing(
            models={version: self.models[version] for version in {number, *versions}},
            state=copy.deepcopy(self.state),
            kept={client: self.kept[client] for client in clients if client in self.kept},
            server=self.server.copy(),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One update of the server: the next `model` (d,), the mean loss of all steps, seconds in all and in turns.

    `clients` are those of its turns, and `kept` is what all clients keep that have trained, by client: until the next
    update. `before`: where the simulation stood, of those updates for which it was asked.
    """

    model: np.ndarray
    loss: float
    seconds: float
    turn_seconds: float
    clients: Sequence[int]
    kept: Mapping[int, np.ndarray]
    before: Standing | None = None

    def whole(self) -> np.ndarray:
        """Return all that the update made: the model, and what its clients keep, in one vector."""
        return _whole(self.model, self.clients, self.kept)


def _whole(model: np.ndarray, clients: Sequence[int], kept: Mapping[int, np.ndarray]) -> np.ndarray:
    return np.concatenate([model, *(kept[client] for client in clients if client in kept)])


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
    now = Standing(models={0: start}, state=State(), server=np.zeros(len(start) if plan.method.meets else 0))
    for number in range(len(table.client)):
        clients = table.client[number].tolist()
        for client in clients if plan.method.keeps else ():
            now.kept.setdefault(client, plan.method.at_rest(plan.terms, start))
        before = now.of(number, clients, table.version[number].tolist()) if number in keep else None
        made = update(plan, number, now, session, exchange)
        now.models[number + 1] = made.model
        # Those stay that a later turn begins on.
        for old in [known for known in now.models if known <= number and last_use.get(known, -1) <= number]:
            del now.models[old]
        yield replace(made, before=before)


def update(plan: Plan, number: int, before: Standing, session: Session, exchange: Exchange) -> Round:
    """Make one update, from where a simulation stands; all that is kept but the models is changed in place."""
    begin = time.perf_counter()
    given, terms = before.models[number], plan.terms
    change, losses, spent = _change(plan, number, before, session, exchange)
    now = given.astype(np.float64)
    _refuse_shape("change", change, now)
    then = now + change
    trained = terms.trained
    stepped = plan.aggregation.step(plan.settings, now[trained], change[trained], before.state)
    _refuse_shape("step", stepped, then[trained])
    then[trained] = stepped
    return Round(
        model=then.astype(given.dtype),
        loss=float(losses.mean()),
        seconds=time.perf_counter() - begin,
        turn_seconds=spent,
        clients=plan.timetable.client[number].tolist(),
        kept=before.kept,
    )


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
    aggregation, method, terms = plan.aggregation, plan.method, plan.terms
    # A rule that has a `change` of its own wants to see each update, whatever it inherits.
    own = type(aggregation).change is not Summed.change
    summed = aggregation if isinstance(aggregation, Summed) and not own else None
    total = ExactSum(size) if summed else None
    weights = summed.weights(plan.settings, counts, staleness) if summed else counts
    vectors = np.empty((0, size)) if summed else np.zeros((count, size))
    kept = np.zeros((count, size) if method.keeps else (0, size), models[number].dtype)
    current = models[number].astype(np.float64) if aggregation.from_current else None
    spent, done = 0.0, exchange.rank

    def first(turn: Turn) -> Turn:
        return method.turn(terms, turn, before.kept.get(turn.client, _NOTHING), before.server)

    def second(turn: Turn) -> Turn:
        return method.own_turn(terms, turn, before.kept[turn.client])

    def keep(places: np.ndarray, turns: list[Turn], reached: np.ndarray) -> None:
        for place, turn, model in zip(places, turns, reached, strict=True):
            kept[place] = method.kept(terms, turn, model, before.kept[turn.client], before.server)

    for turns in _turns(plan, number, models, range(exchange.rank, count, exchange.size)):
        begin, start = time.perf_counter(), done
        for some, piece in _computed(session, map(first, turns)):
            spent += time.perf_counter() - begin
            places = done + exchange.size * np.arange(len(some))
            losses[places] = piece.losses
            for place in range(0, len(some), width):
                part = slice(place, place + width)
                found = piece.weights[part].astype(np.float64)
                for row, turn in zip(found, some[part], strict=True):
                    row -= turn.given if current is None else current
                found[:, terms.personal] = 0
                if total is not None:
                    total.add(found, weights[places[part]])
                else:
                    vectors[places[part]] = found
            if method.keeps and not method.second:
                keep(places, some, piece.weights)
            done += len(some) * exchange.size
            begin = time.perf_counter()
        for some, piece in _computed(session, map(second, turns)) if method.second else ():
            spent += time.perf_counter() - begin
            keep(start + exchange.size * np.arange(len(some)), some, piece.weights)
            start += len(some) * exchange.size
            begin = time.perf_counter()
    losses = exchange.total(losses)
    if summed and total is not None:
        total.parts = exchange.total(total.parts)
        change = summed.mean(plan.settings, total) + 0.0
    else:
        updates = Updates(vectors=exchange.total(vectors), counts=counts, staleness=staleness)
        change = aggregation.combine(plan.settings, updates, before.state)
    if method.keeps:
        _keep(plan, table.client[number], exchange.total(kept), before)
    return method.change(terms, change, before.server), losses, spent


def _keep(plan: Plan, clients: np.ndarray, kept: np.ndarray, before: Standing) -> None:
    """Take in what clients keep after their turns, (turns, d), and what that changes of the server's mean."""
    # A zero has no sign: ranks have added one to it. Each is an array of its own: a view would hold those of all turns.
    zero = kept.dtype.type(0)
    new = {client: own + zero for client, own in zip(clients.tolist(), kept, strict=True)}
    moved = ExactSum(kept.shape[1] if plan.method.meets else 0)
    for client, own in new.items():
        difference = own.astype(np.float64) - before.kept[client]
        # Where a client's own model flies off, the server's may be well: its numbers would be nothing beside these.
        refuse_unusable(difference, "the change of what a client keeps")
        if plan.method.meets:
            moved.add(difference[None], plan.clients.sizes[client : client + 1])
    if plan.method.meets:
        before.server[...] += moved.mean(int(plan.clients.sizes.sum()))
    before.kept.update(new)


def _computed(session: Session, turns: Iterator[Turn]) -> Iterator[tuple[list[Turn], Turned]]:
    """Yield what turns came to with the turns, which are made as they are taken."""
    taken: deque[Turn] = deque()

    def noted() -> Iterator[Turn]:
        for turn in turns:
            taken.append(turn)
            yield turn

    for piece in session.turns(noted()):
        yield [taken.popleft() for _ in piece.losses], piece


def _turns(plan: Plan, number: int, models: dict[int, np.ndarray], places: range) -> Iterator[list[Turn]]:
    """Yield the turns of an update at these places, some thousands at once."""
    table, clients = plan.timetable, plan.clients
    for begin in range(0, len(places), _TURNS):
        taken = np.asarray(places[begin : begin + _TURNS])
        client, turn, version = (array[number, taken] for array in (table.client, table.number, table.version))
        starts = clients.starts[client]
        rows = rows_of_turns(plan.seed, turn, clients.sizes[client], plan.terms.steps, plan.batch)
        rows = clients.rows[rows + starts[:, None, None]]
        seeds = seeds_of_turns(plan.seed, turn, plan.terms.steps)
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
