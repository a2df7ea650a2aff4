"""What ranks used, as metrics of the cell."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from factories import train_cell
from transect.engine.stage import RUNNERS
from transect.launch.processes import Outcome
from transect.stages.train.result import _quality
from transect.stages.train.result_times import overlap_values
from transect.stages.train.result_usage import energy_values, usage_values
from transect.training.rank_files import rank_place, read_places, write_place


def rank(host, *counters, **usage):
    energy = [{"source": source, "joules": joules} for source, joules in counters]
    return {"host": host, "usage": {"cpu_utilisation": 1.0, "energy": energy, **usage}}


def test_energy_counts_each_counter_of_a_node_once():
    facts = [
        rank("a", ("rapl:package-0", 5.0), ("rapl:package-0:dram", 1.0), ("nvml:0", 10.0)),
        rank("a", ("nvml:0", 10.0)),
        rank("b", ("rapl:package-0", 7.0), ("rapl:package-1", 1.0), ("nvml:0", 20.0)),
    ]
    found = {metric.label: metric.value for metric in energy_values(facts)}
    assert found == {"rapl package": 13.0, "rapl dram": 1.0, "nvml": 30.0}
    assert energy_values([rank("a")]) == []


def test_usage_is_told_by_all_ranks_or_by_none():
    facts = [rank("a", gpu_utilisation_mean=0.5), rank("a", gpu_utilisation_mean=0.7)]
    assert usage_values(facts) == {"cpu_utilisation": 1.0, "gpu_utilisation": 0.6}
    assert usage_values([facts[0], rank("a")]) == {"cpu_utilisation": 1.0}


def test_waiting_for_a_rank_that_loads_its_libraries_last_is_not_on_the_way_to_the_target():
    import numpy as np

    facts = [{"test_total": 10, "steps_per_epoch": 4, "data_to_start_s": s} for s in (0.375, 0.125)]
    series = {"score_sum": np.array([5, 9]), "evaluation": np.ones(2), "epoch_end": np.array([1.0, 2.0])}
    model, parameters = SimpleNamespace(score="accuracy"), SimpleNamespace(quality_target=0.8)
    values, reached = _quality(SimpleNamespace(cell=train_cell()), model, facts, series, parameters)
    assert reached and (values["time_to_quality"], values["steps_to_quality"]) == (2.125, 8)


def test_overlap_is_what_is_not_waited_for():
    import numpy as np

    waited, total = np.full((2, 10), 1.0), np.full((2, 10), 4.0)
    assert overlap_values({"communication": waited, "under_way": total}) == {"overlap": 0.75}
    # Not told, and nothing sent.
    assert overlap_values({"communication": waited, "under_way": total * np.nan}) == {}
    assert overlap_values({"communication": waited * 0, "under_way": total * 0}) == {}


def test_waiting_for_a_neighbour_s_computing_is_no_message_that_did_not_hide():
    """Stages wait most of a short step: messages are under way for less, and yet they hide."""
    import numpy as np

    waited, total = np.full((2, 10), 9.0), np.full((2, 10), 4.0)
    series = {"communication": waited, "under_way": total}
    assert overlap_values(series, np.full((2, 10), 8.0)) == {"overlap": 0.75}
    assert overlap_values(series) == {"overlap": 0.0}


def test_of_several_ranks_errors_the_first_one_counts(tmp_path):
    """A rank whose peer has ended fails as well, and may have the lower number."""
    errors = {0: ("Connection closed by peer", 7.5), 1: ("the disk is full", 7.25)}
    for number, (message, at) in errors.items():
        error = {"rank": number, "cause": "crash", "message": message, "at": at}
        (tmp_path / f"rank-00{number}.error.json").write_text(json.dumps(error))
    job: Any = SimpleNamespace(folder=tmp_path, spec={})
    result = RUNNERS.get("train").collect(job, Outcome(end="exited", code=1, seconds=1.0, peak_bytes=0))
    assert result.message == "rank 1: the disk is full"


def test_a_rank_that_failed_is_named_with_all_its_stages(tmp_path):
    # As a pipeline of torch says of ranks with one stage, and with several.
    write_place(tmp_path, 0, {"stage": 0, "stages": [0, 3], "layers": [[0, 2], [5, 6]]})
    write_place(tmp_path, 1, {"stage": 1, "stages": [1], "layers": [2, 5]})
    write_place(tmp_path, 2, {})
    places = read_places(tmp_path)
    assert rank_place(0, places) == "rank 0, stages 0 and 3 (layers 0 to 1, 5)"
    assert rank_place(1, places) == "rank 1, stage 1 (layers 2 to 4)"
    assert rank_place(2, places) == "rank 2"
