"""The two sides of a parameter server over MPI, and all that they say to each other.

Ranks, all of MPI_COMM_WORLD: 0 is the server, 1 to W the workers. Numbers of F are of the type of the flat
gradient (MPI_FLOAT or MPI_DOUBLE), whole ones MPI_INT64_T. A gradient has n numbers in the trainer's own flat order
(of numpy and Go: that of the weights). Weights are the n trained numbers in the neutral layout, in the order of the
model (of a trainer's plan: `weights` with `trained`); statistics are the m others in the same order, of most models none.

| message | from, to | tag | holds |
|---|---|---|---|
| request | worker, server | 1 | 4 whole: what (0 fetch, 1 push), part, step, version |
| gradient | worker, server | 2 | n of F; right behind a push |
| statistics | worker, server | 3 | m of F; right behind the gradient, where m > 0 |
| version | server, worker | 4 | 1 whole; answers a fetch |
| weights | server, worker | 5 | n of F; right behind the version |
| come | server, worker | 6 | 1 whole, of no meaning; to a worker that was away |

All sends and receives block. Each step's batch is cut in W parts, from 0 on. Part w - 1 is worker w's; where workers come
and go, worker w of K that are there computes the parts w - 1, w - 1 + K and so on. `step` is which step the part
belongs to; `version` is the number of updates behind the weights of a fetch (0 in a fetch, the weights' own in the push
that follows it).

A worker does for each of its parts: fetch, receive version and weights, take these (its statistics stay its own), forward
and backward, push. The server takes requests in the order of their arrival, from any rank by tag 1, and what follows
one from its rank.

- It answers a fetch when step - (the first step of which a gradient is yet to be applied) <= staleness, at once where there
  is no bound; otherwise it keeps the fetch and looks again after each update, worker 1 first.
- Staleness > 0 or unbounded: a gradient is applied when it arrives, as an update of its own, at the learning rate over
  W (at the learning rate, where gradients are summed). The rate is that of step (updates before it) // W.
- Staleness 0: gradients are kept until all W are there, added in the order of parts, divided by W (not where they are
  summed) and applied as one update, at the learning rate. That is the synchronous path.
- A worker that is away sends nothing, and waits asleep for `come` before its next part. The server sends that when it
  begins the step in which the worker is there again, and to all who are away in the end.

A step of the server is W gradients applied. Behind the last of them it answers nobody before its next step begins:
behind the last of an epoch it tests meanwhile. There is no barrier between epochs. After all steps everybody joins a broadcast from rank 0 of the weights (n of F), then
where m > 0 of the statistics: those that the server had last from worker 1.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any
from zlib import crc32

import numpy as np

from transect.training.frameworks import ModelPlan, Trainer
from transect.training.strategies import Parts
from transect.training.strategies._root import WeightBuffer

REQUEST, GRADIENT, STATISTICS, VERSION, WEIGHTS, COME = range(1, 7)
FETCH, PUSH = 0, 1
SERVER = 0
# Seconds between two looks of a worker that is away.
_LOOK = 0.001

# A part's number, and its samples and answers.
WorkerPart = tuple[int, object, object]


class _Side:
    """What server and worker share: n trained numbers and m statistics, and how a training ends."""

    def __init__(self, comm: Any, plan: ModelPlan) -> None:
        self.comm, self.workers = comm, comm.size - 1
        arrays = plan.model.weight_shapes()
        self.trained, self.others = (
            WeightBuffer((array for array in arrays if array.trained == which), plan.precision)
            for which in (True, False)
        )
        self.ledger: dict[str, Any] = {}

    def take(self, trainer: Trainer) -> None:
        """Copy the trainer's weights here."""
        weights = trainer.weights()
        self.trained.take(weights)
        self.others.take(weights)

    def give(self, trainer: Trainer) -> None:
        """Replace the trainer's weights by those here."""
        trainer.load(self.trained.views | self.others.views)

    def end(self, trainer: Trainer) -> None:
        """Give all ranks the server's weights; note a checksum of what each ends with."""
        self.take(trainer)
        for buffer in (self.trained, self.others):
            if buffer.flat.size:
                self.comm.Bcast(buffer.flat, root=SERVER)
        self.give(trainer)
        self.take(trainer)
        number = crc32(self.trained.flat.tobytes())
        self.ledger["weights_crc32"] = crc32(self.others.flat.tobytes(), number)


class Worker(_Side):
    """Fetches weights, computes, pushes gradients."""

    def __init__(self, comm: Any, plan: ModelPlan) -> None:
        super().__init__(comm, plan)
        self._sent = self._step = 0
        self._away = False
        self._number = np.empty(1, np.int64)

    def step(self, trainer: Trainer, parts: Iterable[WorkerPart]) -> Parts:
        """Do one; waiting for weights and handing gradients over count as communication.

        The loss is the sum of the parts': where there are as many workers, their mean is the batch's.
        """
        loss = computing = communication = 0.0
        away = True
        for part, x, y in parts:
            if away:
                self._come()
                away = False
            one = self._compute(trainer, part, x, y)
            loss, computing = loss + one.loss, computing + one.compute
            communication += one.communication
        self._away = away
        self._step += 1
        return Parts(loss, computing, communication, communication)

    def _come(self) -> None:
        """Wait to be told, where this worker was away; asleep, as others may need its core."""
        if self._away:
            while not self.comm.Iprobe(source=SERVER, tag=COME):
                time.sleep(_LOOK)
            self.comm.Recv(self._number, source=SERVER, tag=COME)
            self._away = False

    def _compute(self, trainer: Trainer, part: int, x: object, y: object) -> Parts:
        clock = time.perf_counter
        begin = clock()
        self._ask(FETCH, part, 0)
        self.comm.Recv(self._number, source=SERVER, tag=VERSION)
        self.comm.Recv(self.trained.flat, source=SERVER, tag=WEIGHTS)
        fetched = clock()
        version = int(self._number[0])
        self._take_statistics(trainer)
        self.give(trainer)
        loss = trainer.forward_backward(x, y)
        gradient = trainer.gradient()
        self._take_statistics(trainer)
        computed = clock()
        self._ask(PUSH, part, version)
        self.comm.Send(gradient, dest=SERVER, tag=GRADIENT)
        if self.others.flat.size:
            self.comm.Send(self.others.flat, dest=SERVER, tag=STATISTICS)
        self._sent += 1
        communication = clock() - computed + fetched - begin
        return Parts(loss, computed - fetched, communication, communication)

    def end(self, trainer: Trainer) -> None:
        self._come()
        self.ledger["gradients_sent"] = self._sent
        super().end(trainer)

    def _take_statistics(self, trainer: Trainer) -> None:
        """Ask the trainer each time: it may have been handed another state between two steps."""
        if self.others.flat.size:
            self.others.take(trainer.weights())

    def _ask(self, what: int, part: int, version: int) -> None:
        request = np.array([what, part, self._step, version], np.int64)
        self.comm.Send(request, dest=SERVER, tag=REQUEST)


class Server(_Side):
    """Holds the weights and the optimiser; `staleness` None is no bound, 0 the synchronous path."""

    def __init__(self, comm: Any, plan: ModelPlan, trainer: Trainer, *, staleness: int | None, mean: bool) -> None:
        super().__init__(comm, plan)
        self.staleness, self._mean = staleness, mean
        # Gradients applied: of all steps, and of each from the first one on that is not complete.
        self._total = self._first = 0
        self._applied: Counter[int] = Counter()
        # Workers that are there; of each the step of a fetch that waits.
        self._there = self.workers
        self._waiting: dict[int, int] = {}
        # By part: the gradient, its worker and that one's lead.
        self._kept: dict[int, tuple[np.ndarray, int, int]] = {}
        self._version = 0
        self._gradient = np.empty_like(trainer.gradient())
        # Whether `others` are newer than the trainer's, and `trained` are the trainer's.
        self._moved = self._fresh = False
        self._log: list[tuple[int, int, int]] = []
        # How far ahead of the slowest a worker was when it got its weights.
        self._lead: dict[int, int] = {}

    def step(self, trainer: Trainer, learning_rate: float, there: int | None = None) -> Parts:
        """Apply as many gradients as a batch has parts; `there` workers compute them, None: all."""
        clock = time.perf_counter
        begin, waited = clock(), 0.0
        # Somebody may have handed the trainer another state.
        self._fresh = False
        self._call(self.workers if there is None else there)
        end = self._total + self.workers
        while self._total < end:
            # Not behind the last gradient: who fetches before the next step gets the weights of that step's
            # beginning, which may be another state's.
            self._answer(trainer)
            asked = clock()
            worker, what, part, step, version = self.next_request()
            if what == FETCH:
                waited += clock() - asked
                self._waiting[worker] = step
            else:
                self.comm.Recv(self._gradient, source=worker, tag=GRADIENT)
                if self.others.flat.size:
                    self._take_statistics(worker)
                waited += clock() - asked
                self._apply(trainer, (worker, part, step, version), learning_rate)
        return Parts(float("nan"), clock() - begin - waited, waited, float("nan"))

    def _call(self, there: int) -> None:
        """Tell those that come; the first `there` workers are there from now on."""
        for worker in range(self._there + 1, there + 1):
            self.comm.Send(np.zeros(1, np.int64), dest=worker, tag=COME)
        self._there = there

    def next_request(self) -> tuple[int, int, int, int, int]:
        """Return the worker, what it asks for, of which part and step, and the version of a push; by arrival."""
        from mpi4py import MPI

        status, request = MPI.Status(), np.empty(4, np.int64)
        self.comm.Recv(request, source=self.source(), tag=REQUEST, status=status)
        what, part, step, version = request.tolist()
        return status.source, what, part, step, version

    def source(self) -> int:
        """Return from whom the next request is taken: whoever comes first."""
        from mpi4py import MPI

        return int(MPI.ANY_SOURCE)

    def settle(self, trainer: Trainer) -> None:
        if self._moved:
            self.trained.take(trainer.weights())
            self.give(trainer)
            self._moved = False

    def end(self, trainer: Trainer) -> None:
        self.settle(trainer)
        self._call(self.workers)
        self.ledger["gradients_applied"] = self._total
        self.ledger["updates"] = self._version
        super().end(trainer)

    def series(self) -> dict[str, np.ndarray]:
        """Return, for each gradient in the order of application, its staleness, lead and worker."""
        columns = np.array(self._log, np.float64).reshape(-1, 3).T
        return dict(zip(("staleness", "lead", "applied_worker"), columns, strict=True))

    def _take_statistics(self, worker: int) -> None:
        """Keep those of worker 1, the first replica: of the synchronous strategies they are rank 0's."""
        taken = self.others.flat if worker == 1 else np.empty_like(self.others.flat)
        self.comm.Recv(taken, source=worker, tag=STATISTICS)
        self._moved |= worker == 1

    def _apply(self, trainer: Trainer, of: tuple[int, int, int, int], learning_rate: float) -> None:
        worker, part, step, version = of
        lead = self._lead.pop(worker)
        if self.staleness == 0:
            self._kept[part] = self._gradient.copy(), worker, lead
            if len(self._kept) < self.workers:
                return
            total = self._gradient
            total[...] = 0
            for number in range(self.workers):
                total += self._kept[number][0]
            if self._mean:
                total /= self.workers
            for _, rank, its_lead in self._kept.values():
                self._note(rank, step, version, its_lead)
            self._kept.clear()
        else:
            learning_rate = learning_rate / self.workers if self._mean else learning_rate
            self._note(worker, step, version, lead)
        trainer.set_gradient(self._gradient)
        trainer.update(learning_rate)
        trainer.finish_step()
        self._version += 1
        self._fresh = False

    def _note(self, worker: int, step: int, version: int, lead: int) -> None:
        self._log.append((self._version - version, lead, worker))
        self._total += 1
        self._applied[step] += 1
        while self._applied[self._first] == self.workers:
            del self._applied[self._first]
            self._first += 1

    def _answer(self, trainer: Trainer) -> None:
        for worker in sorted(self._waiting):
            lead = self._waiting[worker] - self._first
            if self.staleness is not None and lead > self.staleness:
                continue
            if not self._fresh:
                self.trained.take(trainer.weights())
                self._fresh = True
            del self._waiting[worker]
            self._lead[worker] = lead
            self.comm.Send(np.array([self._version], np.int64), dest=worker, tag=VERSION)
            self.comm.Send(self.trained.flat, dest=worker, tag=WEIGHTS)
