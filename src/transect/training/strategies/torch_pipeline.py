"""Pipelines of torch.distributed.pipelining: seven schedules, replicas by all-reduce or FSDP."""

from __future__ import annotations

import time
from math import nan
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.options import Option
from transect.training.cuts import complaint_of_cut, cut_text, stage_cuts
from transect.training.frameworks import ModelPlan, Trainer
from transect.training.frameworks._torch_part import TorchPart
from transect.training.layout import Layout
from transect.training.models import Model
from transect.training.part_chain import PartChain
from transect.training.parts import boundary_shapes, no_parts, parts_of
from transect.training.strategies import STRATEGIES, Parts
from transect.training.strategies._pipeline_options import CUT, MICRO_BATCHES, STAGES
from transect.training.strategies._torch_groups import TimedCollective, prepare_shards
from transect.training.strategies._torch_replicas import ReplicaStrategy, share_weights
from transect.training.strategies._torch_stages import SCHEDULES, Schedule, make_stage, smooth_edges, waits
from transect.training.traffic import Traffic
from transect.training.workloads import WORKLOADS, model_of

# Schedules by what `simulation.schedules` calls them.
_SIMULATED = {"gpipe": "gpipe", "1f1b": "1f1b", "interleaved-1f1b": "interleaved"}


class _Stages(PartChain):
    """The stages of this rank, each with an optimiser of its own; they need not be neighbours."""


@STRATEGIES.register("torch-pipeline", "pipeline")
class TorchPipeline(ReplicaStrategy):
    """Stages pass micro-batches on as one of torch's own schedules says, over gloo.

    Each loss is weighted by its micro-batch's share of the replica's batch, so torch's own division by
    their number is off: it is right for means over equal micro-batches only. A batch norm sees
    micro-batches, and its running statistics move once for each, in their order, as the reference's do.
    Replicas of a stage add up their gradients after the schedule, or shard the stage by FSDP.

    DistributedDataParallel is not offered for that: its reducer counts on one backward pass for each
    forward pass. Tried with 2.13 on 2 stages x 2 replicas: under 1F1B it is right; GPipe, interleaved
    and ZBV fail in the second step, ZBV having trained wrongly in the first. With
    `find_unused_parameters` ZBV runs, and its weights are off by 0.4, as are GPipe's with
    `static_graph`: no error says so.
    Source: https://docs.pytorch.org/docs/stable/distributed.pipelining.html
    """

    splits_update = True

    parts = "stages"
    options = {  # noqa: RUF012 a constant
        "stages": STAGES,
        "micro_batches": MICRO_BATCHES,
        "schedule": Option(default="1f1b", choices=tuple(SCHEDULES), description="the order of passes"),
        "loops": Option(default=0, min=0, description="stages on each rank; 0: as the schedule asks for, 1 or 2"),
        "cut": CUT,
        "reduce": Option(
            default="all-reduce",
            choices=("all-reduce", "fsdp"),
            description="how replicas of a stage come to one gradient",
        ),
    }

    def __init__(self) -> None:
        super().__init__()
        self._schedule: Any = None
        self._waits: Any = None
        self._timed: list[TimedCollective] = []

    def _asked(self, cell: TrainCell) -> tuple[str, Schedule, int]:
        given = self.settings(cell)
        name = str(given["schedule"])
        schedule = SCHEDULES[name]
        return name, schedule, int(given["loops"]) or schedule.loops[0]

    def layout(self, cell: TrainCell) -> Layout:
        of = super().layout(cell)
        return Layout(of.replicas, of.model_parts, int(self.settings(cell)["micro_batches"]))

    def complaint(self, model: Model, cell: TrainCell) -> str | None:
        """A layer for each stage, and as many micro-batches as the schedule takes."""
        layout, (name, schedule, loops) = self.layout(cell), self._asked(cell)
        if loops not in schedule.loops:
            takes = ", ".join(map(str, sorted(schedule.loops)))
            return f"schedule {name} takes {takes} stages on each rank, not {loops}"
        needs = schedule.needs(layout.model_parts, layout.micro_batches)
        if needs is not None:
            return f"schedule {name} takes {needs}"
        cut = str(self.settings(cell)["cut"])
        return no_parts(model) or complaint_of_cut(model, cut, layout.model_parts * loops)

    def traffic(self, cell: TrainCell) -> Traffic | None:
        name, _, loops = self._asked(cell)
        schedule = _SIMULATED.get(name)
        if schedule is None or self.settings(cell)["reduce"] != "all-reduce":
            return None
        model = model_of(WORKLOADS.get(cell.workload))
        stages = self.layout(cell).model_parts * loops
        return Traffic(
            pattern="pipeline",
            carrier="gloo",
            schedule=schedule,
            chunks=loops,
            cuts=stage_cuts(model, str(self.settings(cell)["cut"]), stages),
        )

    def build(self, plan: ModelPlan, cell: TrainCell) -> Trainer:
        groups, layout = self.groups, self.layout(cell)
        name, schedule, loops = self._asked(cell)
        ranks = layout.model_parts
        cuts = stage_cuts(plan.model, str(self.settings(cell)["cut"]), ranks * loops)
        pieces = parts_of(plan.model, cuts)
        self._own = schedule.stages(groups.part, ranks, loops)
        self._owners = {stage: rank for rank in range(ranks) for stage in schedule.stages(rank, ranks, loops)}
        self.tells_loss = len(pieces) - 1 in self._own
        self._layout, self._samples = layout, plan.batch
        self._shapes = [boundary_shapes(plan.model)[end] for end in (0, *cuts, pieces[-1].last)]
        self._by_shards = self.settings(cell)["reduce"] == "fsdp" and layout.replicas > 1
        local_pieces = [pieces[stage] for stage in self._own]
        layers = [[piece.first, piece.last] for piece in local_pieces]
        self._facts = {
            "stage": groups.part,
            "stages": self._own,
            "layers": layers[0] if loops == 1 else layers,
            "schedule": name,
            "cut": cut_text(cuts),
        }
        self._class = schedule.torch
        trainer: Any = _Stages([TorchPart(plan, piece) for piece in local_pieces])
        made: Trainer = trainer
        return made

    def start(self, trainer: Trainer) -> None:
        """Take rank 0's weights, shard the stages if asked to, and make torch's schedule."""
        from torch.distributed.pipelining import schedules

        stages: Any = trainer
        stages.load(share_weights(self._start))
        self._waits = waits()
        if self._by_shards:
            self._shard(stages)
        sizes = [cut.stop - cut.start for cut in self._layout.micro(self._samples)]
        made = []
        for number, part in zip(self._own, stages.parts, strict=True):
            smooth_edges(part.trainer.model)
            made.append(
                make_stage(
                    part.trainer.model,
                    number,
                    len(self._owners),
                    self.groups.replica.process_group,
                    sizes,
                    part.trainer.dtype,
                    *self._shapes[number : number + 2],
                )
            )
        kind = getattr(schedules, self._class)
        loss = stages.parts[-1].trainer.loss_of

        def weighted(outputs: Any, y: Any) -> Any:
            return loss(outputs, y) * (len(y) / self._samples)

        single = issubclass(kind, schedules.PipelineScheduleSingle)
        self._schedule = kind(made[0] if single else made, len(sizes), loss_fn=weighted, scale_grads=False)

    def _shard(self, stages: Any) -> None:
        import torch.distributed as dist
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard

        mesh = DeviceMesh.from_group(self.groups.peers.process_group, "cpu")
        for part in stages.parts:
            if part.trainer.parameters:
                group = fully_shard(part.trainer.model, mesh=mesh)
                self._timed += prepare_shards(group, self.operation, "cpu")
                part.trainer.rebind(part.trainer.model.parameters())
        dist.barrier()

    def step(self, trainer: Trainer, x: Any, y: Any, learning_rate: float) -> Parts:
        """Run the schedule, then reduce and update. Torch does not tell how long messages take: NaN.

        `bubble` is all waiting in the schedule: torch waits for its sends in the same place.
        """
        stages: Any = trainer
        self._waits.seconds = 0.0
        for collective in self._timed:
            collective.seconds = 0.0
        self.groups.take_seconds()
        begin = time.perf_counter()
        stages.begin_step()
        losses: list[Any] = []
        try:
            self._schedule.step(
                *([x] if 0 in self._own else []),
                target=y if self.tells_loss else None,
                losses=losses,
                return_outputs=False,
            )
        except RuntimeError as error:
            # Torch says which shapes a stage had, and only beneath that what was wrong.
            raise error.__cause__ or error from None
        bubble = self._waits.seconds
        if not self._by_shards:
            self.sum_gradients(trainer, trainer.gradient(), self.groups.peers)
        trainer.update(learning_rate)
        trainer.finish_step()
        loss = sum(value.item() for value in losses) if self.tells_loss else nan
        whole = time.perf_counter() - begin
        if not self._waits.available:
            return Parts(loss, nan, nan, nan, nan)
        waited = bubble + self.groups.take_seconds() + sum(collective.seconds for collective in self._timed)
        return Parts(loss, whole - waited, waited, nan, bubble)

    def predict(self, trainer: Trainer, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, ...) on every rank; all ranks must call it."""
        import torch
        import torch.distributed as dist

        stages: Any = trainer
        cuts = [cut for cut in self._layout.micro(len(x)) if cut.stop > cut.start]
        outputs = torch.empty((len(x), *self._shapes[-1]), dtype=stages.parts[0].trainer.dtype)
        given = self._pass_through(stages, [x[cut] for cut in cuts])
        for cut, array in zip(cuts, given, strict=False):
            outputs[cut] = torch.from_numpy(array)
        group, last = self.groups.replica, self._owners[len(self._owners) - 1]
        dist.broadcast(outputs, group.ranks[last], group=group.process_group)
        for part in stages.parts:
            if self._by_shards and part.trainer.parameters:
                # It would stay whole, and the next step would save a gather that others pay for.
                part.trainer.model.reshard()
        found: np.ndarray = outputs.numpy()
        return found

    def _pass_through(self, stages: Any, several: list[np.ndarray]) -> list[np.ndarray]:
        """Return the last stage's outputs where it is, elsewhere nothing; stage by stage."""
        import torch
        import torch.distributed as dist

        group, here, sends = self.groups.replica, several, []
        for stage, part in zip(self._own, stages.parts, strict=True):
            before, after = self._owners.get(stage - 1), self._owners.get(stage + 1)
            if before not in (None, self.groups.part):
                here = []
                for batch in several:
                    shape, dtype = (len(batch), *self._shapes[stage]), part.trainer.dtype
                    buffer = torch.empty(shape, dtype=dtype)
                    dist.recv(buffer, group.ranks[before], group=group.process_group)
                    here.append(buffer.numpy())
            here = [part.predict(batch) for batch in here]
            if after not in (None, self.groups.part):
                for array in here:
                    tensor, peer = torch.from_numpy(array), group.ranks[after]
                    sends.append((dist.isend(tensor, peer, group=group.process_group), tensor))
        for work, _ in sends:
            work.wait()
        return here if self.tells_loss else []

    def weights(self, trainer: Trainer) -> dict[str, np.ndarray]:
        """Put the stages of this replica together; all ranks must call it."""
        import torch.distributed as dist

        group, local = self.groups.replica, trainer.weights()
        found: list[Any] = [None] * len(group.ranks)
        dist.all_gather_object(found, local, group=group.process_group)
        return {name: array for part in found for name, array in part.items()}

    def details(self) -> dict[str, Any]:
        """Say which layers this rank had, and how it went through them."""
        return super().details() | self._facts
