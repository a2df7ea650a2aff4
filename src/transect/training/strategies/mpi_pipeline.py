"""Pipelines over MPI: stages of one model pass micro-batches on, replicas sum their gradients."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import nan
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.options import Option
from transect.domain.precisions import find_precision
from transect.training.cuts import complaint_of_cut, cut_text, stage_cuts
from transect.training.frameworks import FRAMEWORKS, Framework, ModelPlan, PartFramework, PartTrainer, Trainer
from transect.training.layout import Layout
from transect.training.part_chain import PartChain
from transect.training.parts import boundary_shapes, no_parts, parts_of, pieces_of
from transect.training.pipeline_schedules import SCHEDULES, live_micro_batches
from transect.training.strategies import STRATEGIES, Parts
from transect.training.strategies._lanes import Lane, Outbox
from transect.training.strategies._mpi import MpiStrategy
from transect.training.strategies._pipeline_options import CUT, MICRO_BATCHES, STAGES
from transect.training.strategies._progress import PROGRESS, WAIT, Flight, Progress
from transect.training.traffic import Traffic
from transect.training.workloads import WORKLOADS, model_of

_OUTPUTS, _GRADIENTS = 0, 1


@STRATEGIES.register("mpi-pipeline", "pipeline")
class MpiPipeline(MpiStrategy):
    """GPipe or 1F1B over any framework that trains parts of a model.

    Stages send outputs forwards and gradients backwards without waiting for it, and receive into
    buffers that were posted ahead. Replicas sum each stage's gradients by all-reduce: those of the last
    micro-batch's pieces while it still goes back through the others (`overlap`), or at its end.
    """

    splits_update = True

    sharded = True
    options: Mapping[str, Option] = MappingProxyType(
        {
            "stages": STAGES,
            "micro_batches": MICRO_BATCHES,
            "schedule": Option(default="1f1b", choices=tuple(SCHEDULES), description="the order of passes"),
            "cut": CUT,
            "reduce": Option(
                default="overlap",
                choices=("overlap", "end"),
                description="when replicas sum: piece by piece in the last backward pass, or after it",
            ),
            "bucket_bytes": Option(default=2**22, min=1, description="least size of such a piece's gradient"),
            "progress": PROGRESS,
            "wait": WAIT,
        }
    )

    def supports(self, cell: TrainCell) -> str | None:
        """Lists of layers, by frameworks that train parts, cut so that each stage has a layer."""
        if not isinstance(FRAMEWORKS.get(cell.framework), PartFramework):
            return f"{cell.framework} trains whole models, not the parts of a pipeline"
        model = model_of(WORKLOADS.get(cell.workload))
        stages = self._stages(cell)
        if cell.ranks % stages:
            return f"{cell.ranks} ranks are no replicas of {stages} stages"
        reason = no_parts(model)
        if reason is not None:
            return reason
        return complaint_of_cut(model, str(self.settings(cell)["cut"]), stages)

    def _stages(self, cell: TrainCell) -> int:
        return int(self.settings(cell)["stages"]) or cell.ranks

    def layout(self, cell: TrainCell) -> Layout:
        """Replicas of as many ranks as there are stages."""
        stages = self._stages(cell)
        replicas = max(1, cell.ranks // stages)
        return Layout(replicas, stages, int(self.settings(cell)["micro_batches"]))

    def traffic(self, cell: TrainCell) -> Traffic:
        given = self.settings(cell)
        model = model_of(WORKLOADS.get(cell.workload))
        return Traffic(
            pattern="pipeline",
            carrier="mpi",
            schedule=str(given["schedule"]),
            cuts=stage_cuts(model, str(given["cut"]), self._stages(cell)),
            progress=given["progress"] != "none",
            behind=given["reduce"] == "overlap" and given["progress"] != "none",
        )

    def trainer(self, framework: Framework, plan: ModelPlan, cell: TrainCell) -> Trainer:
        assert isinstance(framework, PartFramework)
        given = self.settings(cell)
        self._layout = layout = self.layout(cell)
        replica, self._stage = divmod(self.comm.rank, layout.model_parts)
        self._replica, self._last = replica, layout.model_parts - 1
        self.tells_loss = self._stage == self._last
        self._chain = self.comm.Split(replica, self._stage)
        self._questions = self._chain.Dup()
        self._peers = self.comm.Split(self._stage, replica)
        cuts = stage_cuts(plan.model, str(given["cut"]), layout.model_parts)
        part = parts_of(plan.model, cuts)[self._stage]
        self._dtype = np.dtype(find_precision(plan.precision).array)
        self._overlaps = given["reduce"] == "overlap" and layout.replicas > 1
        least = int(given["bucket_bytes"]) // self._dtype.itemsize if self._overlaps else 0
        pieces = pieces_of(plan.model, part, least) if self._overlaps else [part]
        trainer = PartChain([framework.part_trainer(plan, piece) for piece in pieces])
        shapes = boundary_shapes(plan.model)
        self._before, self._output = shapes[part.first], shapes[-1]
        schedule = str(given["schedule"])
        count = layout.micro_batches
        self._passes = SCHEDULES[schedule](self._stage, layout.model_parts, count)
        self._progress = Progress(str(given["progress"]), sleeps=given["wait"] == "sleep")
        # One more than are alive, so that the next one arrives while this one is computed.
        live = min(count, live_micro_batches(self._passes) + 1)
        self._inbox = self._lane(self._stage - 1, _OUTPUTS, live, self._before)
        # Never written twice in a step: a device may read one after `backward` has returned.
        self._back = self._lane(self._stage + 1, _GRADIENTS, count, shapes[part.last])
        self._onward = Outbox(self._progress, self._chain, self._stage + 1, _OUTPUTS)
        self._return = Outbox(self._progress, self._chain, self._stage - 1, _GRADIENTS)
        self._facts = {
            "replica": replica,
            "stage": self._stage,
            "layers": [part.first, part.last],
            "cut": cut_text(cuts),
            "schedule": schedule,
            "pieces": len(pieces),
            "live_micro_batches": live_micro_batches(self._passes),
            "progress": given["progress"],
            "wait": given["wait"],
        }
        return cast(Trainer, trainer)

    def _lane(self, source: int, tag: int, slots: int, shape: tuple[int, ...]) -> Lane | None:
        if not 0 <= source <= self._last:
            return None
        return Lane(self._progress, self._chain, source, tag, slots, shape, self._dtype)

    def start(self, trainer: Trainer) -> None:
        weights = trainer.weights()
        for array in weights.values():
            self._peers.Bcast(array, root=0)
        trainer.load(weights)

    def add(self, flat: np.ndarray) -> None:
        self._progress.wait(self._begin_sum(flat))

    def step(self, trainer: Trainer, x: Any, y: Any, learning_rate: float) -> Parts:
        begin = time.perf_counter()
        chain = cast(PartChain, trainer)
        micro = self._layout.micro(len(y))
        sizes = [rows.stop - rows.start for rows in micro]
        chain.begin_step()
        lanes = [lane for lane in (self._inbox, self._back) if lane is not None]
        for lane in lanes:
            lane.open(sizes)
        loss = 0.0 if self.tells_loss else nan
        reducing: list[tuple[PartTrainer, np.ndarray, Flight]] = []
        for way, i in self._passes:
            if way:
                weight = sizes[i] / len(y)
                loss += self._forward(chain, i, x[micro[i]], y[micro[i]], weight)
            else:
                final = self._overlaps and i == len(micro) - 1
                self._backward(chain, i, reducing if final else None)
            self._progress.poll()
        bubble = sum(lane.waited for lane in lanes)
        self._update(chain, reducing, learning_rate)
        waited, under_way = self._progress.finish_step()
        self._onward.clear()
        self._return.clear()
        chain.finish_step()
        return Parts(loss, time.perf_counter() - begin - waited, waited, under_way, bubble)

    def _forward(self, chain: PartChain, i: int, x: Any, y: Any, weight: float) -> float:
        """Return the micro-batch's share of the loss; 0 where the model does not end."""
        if self._inbox is not None:
            x = self._inbox.take(i)
        if self.tells_loss:
            return weight * chain.loss(i, x, y, weight)
        self._onward.send(i, chain.forward(i, x))
        return 0.0

    def _backward(
        self, chain: PartChain, i: int, reducing: list[tuple[PartTrainer, np.ndarray, Flight]] | None
    ) -> None:
        """Go back; with `reducing`, begin to sum each piece's gradient, which is complete then."""
        g = None if self._back is None else self._back.take(i)
        if self._back is not None:
            # The neighbour has answered, so this costs no time.
            self._onward.sent(i)
        for piece, inner in chain.backwards(i, g):
            if reducing is not None:
                flat = piece.gradient()
                reducing.append((piece, flat, self._begin_sum(flat)))
                self._progress.poll()
            g = inner
        if g is None:
            return
        self._return.send(i, g)
        if self._inbox is not None:
            self._inbox.release(i)

    def _begin_sum(self, flat: np.ndarray) -> Flight:
        from mpi4py import MPI

        return self._progress.add(self._peers.Iallreduce, MPI.IN_PLACE, flat, op=MPI.SUM)

    def _update(self, chain: PartChain, reducing: list[tuple[PartTrainer, np.ndarray, Flight]], rate: float) -> None:
        """Update each piece as soon as its gradient is summed; sum here what was not begun before."""
        divisor = self._layout.replicas if self.operation == "mean" else 1
        for piece, flat, flight in reducing:
            self._progress.wait(flight)
            flat /= divisor
            piece.set_gradient(flat)
            piece.update(rate)
        if reducing:
            return
        if self._layout.replicas > 1:
            flat = chain.gradient()
            self.add(flat)
            flat /= divisor
            chain.set_gradient(flat)
        chain.update(rate)

    def predict(self, trainer: Trainer, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, ...) on rank 0; the other ranks give NaN, which nobody reads.

        The first replica computes, whose running statistics are the training's.
        """
        outputs = np.full((len(x), *self._output), nan, self._dtype)
        if self._replica:
            return outputs
        comm, sending = self._questions, []
        several = [rows for rows in self._layout.micro(len(x)) if rows.stop > rows.start]
        for rows in several:
            given = x[rows]
            if self._stage:
                given = np.empty((rows.stop - rows.start, *self._before), self._dtype)
                comm.Recv(given, source=self._stage - 1)
            result = np.ascontiguousarray(trainer.predict(given), self._dtype)
            if self._last == 0:
                outputs[rows] = result
                continue
            # From the last stage to the first one.
            target = (self._stage + 1) % (self._last + 1)
            sending.append((comm.Isend(result, dest=target), result))
        if self._stage == 0 and self._last:
            for rows in several:
                comm.Recv(outputs[rows], source=self._last)
        for request, _ in sending:
            request.Wait()
        return outputs

    def weights(self, trainer: Trainer) -> dict[str, np.ndarray]:
        """Return those of the first replica's stages on rank 0, elsewhere the rank's own."""
        local = trainer.weights()
        if self._replica:
            return local
        found = self._chain.gather(local, root=0)
        return {name: array for part in found or [local] for name, array in part.items()}

    def close(self) -> None:
        """End a thread that calls MPI."""
        self._progress.close()

    def leave(self) -> None:
        """End MPI, which nobody may call then."""
        self.close()
        super().leave()

    def details(self) -> dict[str, Any]:
        """Return which layers this rank had, and how it worked through them."""
        return self._facts
