"""From records to tables, groups, floors, and what distribution, input and sums cost."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from factories import bare_record, train_cell
from transect.analysis.groups import Floors, Group, group_records
from transect.analysis.kinds import Kind
from transect.analysis.load import load_records
from transect.analysis.originals import Originals
from transect.analysis.scaling import ScalingKind, efficiencies
from transect.analysis.table import COLUMNS, write_parquet
from transect.domain.record import Cause, MetricValue, Record, Samples, Status, write_record
from transect.report.topics.distribution.costs import distribution_costs
from transect.report.topics.distribution.twins import rate_factor
from transect.stats.samples import NoiseFloor


def train(ranks: int, rate: float, repeat: int = 0, strategy: str = "ddp", **details: Any) -> Record:
    """Make a synthetic training record on one node."""
    cell = train_cell("torch", repeat, workload="w", strategy=strategy, ranks_per_node=ranks, batch=64)
    details = {"global_batch": 64, **details}
    return bare_record(cell, {"samples_per_second": rate, "equality_ratio": 0.5}, details=details)


def test_table_has_a_row_per_metric_and_one_for_a_record_without() -> None:
    skipped = bare_record(train_cell("mxnet", batch=64), status=Status.SKIPPED, cause=Cause.UNSUPPORTED)
    stream = io.BytesIO()
    write_parquet([skipped, train(2, 100.0)], stream)
    table = pd.read_parquet(stream)
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == 3
    row = table[table["status"] == "skipped"].iloc[0]
    assert row["cause"] == "unsupported"
    assert row[["metric", "value", "unit"]].isna().all()
    speed = table[table["metric"] == "samples_per_second"].iloc[0]
    assert (speed["ranks"], speed["value"], speed["unit"], speed["direction"]) == (2, 100.0, "1/s", "higher")


def test_repeats_form_one_group_and_wrong_results_are_not_usable() -> None:
    wrong = train(1, 9e9, repeat=1)
    wrong = wrong.model_copy(update={"metrics": [MetricValue.of("equality_ratio", 3.0)]})
    (group,) = group_records([train(1, 100.0), wrong])
    assert len(group.records) == 2
    assert group.wrong
    assert group.values("samples_per_second") == [100.0]


def test_unreadable_records_and_side_files_become_problems(tmp_path: Path) -> None:
    study = tmp_path / "study"
    good = train(1, 100.0)
    good = good.model_copy(
        update={
            "samples": {
                "loss": Samples(unit="1", file="side.npz", key="loss", count=3),
                "gone": Samples(unit="1", file="gone.npz", key="loss", count=3),
                "outside": Samples(unit="1", file="../../../x.npz", key="loss", count=3),
            }
        }
    )
    folder = study / "train" / good.cell_id
    write_record(folder / "record.json", good)
    np.savez(folder / "side.npz", loss=np.array([3.0, 2.0, 1.0]))
    for name, text in (("bad~00000001", "{"), ("empty~00000002", ""), ("other~00000003", "[1]")):
        (study / "train" / name).mkdir()
        (study / "train" / name / "record.json").write_text(text)
    (study / "train" / "none~00000004").mkdir()
    loaded = load_records(study)
    assert [record.cell_id for record in loaded.records] == [good.cell_id]
    assert len(loaded.problems) == 4
    reader = Originals(loaded.results, loaded.problems)
    assert reader.samples(loaded.records[0], "loss") == [3.0, 2.0, 1.0]
    assert reader.samples(loaded.records[0], "gone") == []
    assert reader.samples(loaded.records[0], "outside") == []
    assert len(loaded.problems) == 6


SYNTHETIC = Kind((("input", "synthetic"),))
FLOOR = NoiseFloor(relative=0.02, pairs=9)


def run(
    strategy: str = "single",
    ranks: int = 1,
    repeat: int = 0,
    *,
    step: float = 1.0,
    parts: tuple[float | None, float | None, float | None] = (0.9, 0.0, 0.1),
    over: bool = False,
    extra: dict[str, float] | None = None,
    **axes: Any,
) -> Record:
    """Make a synthetic run with (compute, communication, input) seconds in a step."""
    axes = {"framework": "torch", "batch": 64, **axes}
    cell = train_cell(workload="w", strategy=strategy, ranks_per_node=ranks, repeat=repeat, **axes)
    names = ("compute_time", "communication_time", "input_time")
    known = {name: part for name, part in zip(names, parts, strict=True) if part is not None}
    metrics = {"step_time": step, "samples_per_second": cell.batch / step, **known, **(extra or {})}
    details = {"global_batch": cell.batch, "over_subscribed": over}
    return bare_record(cell, metrics, details=details, parameters={"batch": 64})


def repeats(*arguments: Any, step: float = 1.0, **fields: Any) -> list[Record]:
    """Three repeats that differ by half a percent."""
    return [run(*arguments, repeat=repeat, step=step * (1 + repeat / 200), **fields) for repeat in range(3)]


def costs(*records: Record) -> dict[tuple[str, int], Any]:
    found = distribution_costs(group_records(records))
    return {(cost.group.cell.strategy, cost.group.cell.ranks): cost for cost in found}


def test_strong_scaling_is_held_against_the_step_over_the_ranks_and_split_in_its_parts() -> None:
    found = costs(run(step=1.0), run("ddp", 2, step=0.8, parts=(0.55, 0.15, 0.06)))
    cost = found["ddp", 2]
    assert cost.scaling is ScalingKind.STRONG
    assert (cost.ideal_s, cost.cost) == (0.5, pytest.approx(0.6))
    assert cost.lost_s == pytest.approx(0.3) == sum(filter(None, cost.parts.values())) + cost.other_s
    # Weak scaling is held against the step itself.
    cost = costs(run(step=1.0), run("ddp", 2, step=1.3, parts=(1.0, 0.2, 0.1), batch=128))["ddp", 2]
    assert (cost.scaling, cost.ideal_s, cost.lost_s) == (ScalingKind.WEAK, 1.0, pytest.approx(0.3))


def test_what_a_library_does_not_tell_is_missing_and_not_zero() -> None:
    cost = costs(run(), run("horovod", 2, step=0.9, parts=(None, None, 0.05)))["horovod", 2]
    assert sorted(cost.parts.values(), key=lambda part: part is None)[-2:] == [None, None]


def test_the_base_is_single_and_else_the_same_strategy_on_one_rank() -> None:
    found = costs(run(step=1.0), run("mpi", 1, step=1.2), run("mpi", 2, step=0.7))
    assert found["mpi", 2].base.cell.strategy == "single"
    assert found["mpi", 1].cost == pytest.approx(0.2)
    assert costs(run("mpi", 1), run("mpi", 2))["mpi", 2].base.cell.strategy == "mpi"
    assert costs(run("mpi", 1), run("ddp", 2)) == {}


@pytest.mark.parametrize(
    "axes",
    [
        {"precision": "amp-bf16"},
        {"input": "synthetic"},
        {"input": "files"},
        {"reduce": "sum"},
        {"learning_rate_rule": "linear"},
        {"framework": "mxnet"},
        {"device": "cuda"},
        {"threads": 2},
    ],
)
def test_another_kind_is_no_base(axes: dict[str, Any]) -> None:
    records = [run(), run("ddp", 2, **axes)]
    assert costs(*records) == {}
    assert efficiencies(group_records(records), None) == []


def groups_of(*axes: dict[str, Any]) -> list[Group]:
    return group_records([run("mpi", 2, **point) for point in axes])


def test_a_kind_has_a_noise_floor_of_its_own_and_synthetic_noise_is_asked_for() -> None:
    def pair(wide: float, **axes: Any) -> list[Record]:
        return [run(step=1.0, **axes), run("single", 1, 1, step=1 + wide, **axes)]

    floors = Floors(group_records([*pair(0.1), *pair(0.5, input="synthetic"), *pair(0.3, precision="fp64")]))
    name = "step_time"
    for kind, wide in (
        (Kind(), 0.1),
        (SYNTHETIC, 0.5),
        (Kind((("precision", "fp64"),)), 0.3),
        (None, 0.3),
        (Kind((("reduce", "sum"),)), 0.3),
    ):
        floor = floors.get("train", "w", name, kind)
        assert floor is not None and floor.relative == pytest.approx(wide), kind
    alone = Floors(group_records(pair(0.5, input="synthetic"))).get("train", "w", name)
    assert alone is not None and alone.relative == pytest.approx(0.5)


def test_the_rate_grows_with_a_sum_and_with_the_linear_rule() -> None:
    groups = groups_of(
        {},
        {"reduce": "sum"},
        {"batch": 128, "learning_rate_rule": "linear"},
        {"batch": 128, "learning_rate_rule": "linear", "reduce": "sum"},
    )
    assert sorted(filter(None, map(rate_factor, groups))) == [1, 2, 2, 4]
    bare = run("mpi", 2, batch=128, learning_rate_rule="linear").model_copy(update={"parameters": {}})
    assert rate_factor(group_records([bare])[0]) is None
