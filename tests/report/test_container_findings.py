"""What is said of containers: SYNTHETIC records, the same cells with and without."""

from __future__ import annotations

import random

from make_records import make_record
from runtime_reports import findings

from transect.analysis.containers import container_costs, published_answer
from transect.analysis.groups import group_records
from transect.analysis.load import Loaded
from transect.domain.cell import Cell
from transect.domain.record import Cause, LogPoint, MetricValue, Record, Status
from transect.domain.until import Aims
from transect.report.blocks import Chip, Table
from transect.report.context import Context
from transect.report.making import all_parts, make_section


def cell(container: str | None, repeat: int, **axes: object) -> Cell:
    common = {"workload": "digits-mlp", "framework": "numpy", "strategy": "single", "batch": 64}
    return Cell.of(stage="train", container=container, repeat=repeat, **common | axes)


def records(
    *, later: float = 0.2, step: float = 1.0, noise: float = 0.004, repeats: int = 6, **axes: object
) -> list[Record]:
    """One cell with and without podman: `later` s to start, `step` times the step, and its noise."""
    rng, found = random.Random(5), []
    over = bool(axes.pop("over", False))
    for repeat in range(repeats):
        for container in (None, "podman"):
            inside = container is not None
            # What a repeat's seed does, it does to both.
            seed = 1 + 0.05 * repeat
            values = {
                "startup_time": 2 * seed * (1 + rng.gauss(0, noise)) + later * inside,
                "step_time": 1e-3 * seed * (1 + rng.gauss(0, noise)) * (step if inside else 1),
                "input_time": 4e-4 * seed * (1 + rng.gauss(0, noise)),
            }
            found.append(
                make_record(
                    cell(container, repeat, **axes), values, details={"over_subscribed": over}
                )
            )
    return found


def sweep(factor: float) -> list[Record]:
    """An all-reduce of two sizes with and without; the small one takes `factor` times in a container."""
    rng, found = random.Random(7), []
    for repeat in range(6):
        for container in (None, "podman"):
            at = Cell.of(
                stage="bench", benchmark="message-sweep", options=(("test", "allreduce"),), ranks_per_node=2, container=container, repeat=repeat
            )  # fmt: skip
            inside = factor if container else 1.0
            noise = [1 + rng.gauss(0, 0.004) for _ in range(2)]
            times = {4: 2e-6 * inside * noise[0], 1024: 7e-6, 1048576: 3e-4 * noise[1]}
            values = [
                MetricValue.of(
                    "collective_time", time, f"avg_latency {size}", LogPoint(series="avg_latency", size=size)
                )
                for size, time in times.items()
            ]  # fmt: skip
            found.append(make_record(at, values))
    return found


def costs(made: list[Record]):
    groups = group_records(made)
    return {(one.metric, one.size): one for one in container_costs(groups)}


def test_costs_keep_to_the_studys_margin_and_looks():
    groups = group_records(records())
    plain, strict = (
        next(one for one in container_costs(groups, aims) if one.metric == "step_time").comparison
        for aims in (Aims(), Aims(margin=0.001, looks={"train": 3}))
    )
    assert plain.equal and plain.margin == 0.05
    assert not strict.equal and strict.margin == 0.001
    assert plain.decision is not None and strict.decision is not None
    # Each look may be wrong, so the interval is a wider one.
    assert strict.decision.low < plain.decision.low < plain.decision.high < strict.decision.high


def test_a_later_start_is_found_with_its_interval_and_the_rest_is_noise():
    found = costs(records(later=0.2))
    start, step = found["startup_time", None], found["step_time", None]
    assert start.shown and 0.18 < start.difference.median < 0.22 and start.difference.low > 0.15
    assert start.ratio.confidence is not None and start.ratio.count == 6
    assert not step.shown and step.ratio.low < 1 < step.ratio.high
    # Nothing is read in a step whose input is stored.
    assert set(found) == {("startup_time", None), ("step_time", None)}


def test_the_seeds_of_repeats_are_no_noise_of_the_container():
    # Repeats differ by 25 %, pairs by 8 %.
    assert costs(records(step=1.08, noise=0.001))["step_time", None].shown
    # A cost that is surely there and surely within 5 % is told as that, with its interval.
    made = records(step=1.03, noise=0.001)
    assert costs(made)["step_time", None].same
    (step,) = (one for one in findings(*made)["container"] if "a step of" in one.claim)
    assert step.claim.startswith("in podman, a step of digits-mlp") and step.sureness == "firm"
    assert "is the same within 5 %: 1.030 times (95 % interval 1.028 to 1.032)" in step.claim


def test_files_are_asked_for_where_they_are_read():
    assert ("input_time", None) in costs(records(input="files"))


def test_a_container_without_its_twin_costs_nothing_that_is_known():
    assert costs([one for one in records() if one.cell.container]) == {}
    other = [one for one in records() if one.cell.container] + [
        one for one in records(batch=128) if not one.cell.container
    ]
    assert costs(other) == {}


def test_the_smallest_and_the_largest_message_are_told():
    found = costs(sweep(3.0))
    assert set(found) == {("collective_time", 4), ("collective_time", 1048576)}
    assert 2.9 < found["collective_time", 4].ratio.median < 3.1
    assert not found["collective_time", 1048576].shown


def test_sentences_carry_ratio_interval_and_seconds():
    said = {one.claim: one for one in findings(*records(later=0.2), *sweep(3.0))["container"]}
    (start,) = (one for claim, one in said.items() if "start-up" in claim)
    assert start.claim.startswith(
        "in podman, start-up of digits-mlp, numpy, single, 1 rank takes 1.0"
    )
    assert "(95 % interval 1.0" in start.claim and "ms more." in start.claim
    (step,) = (one for claim, one in said.items() if "a step of" in claim)
    assert "a step of digits-mlp, numpy, single, 1 rank is the same within 5 %" in step.claim
    assert len(step.comparisons) == 1 == len(start.comparisons)
    (small,) = (one for claim, one in said.items() if "a collective of 4 B" in claim)
    assert (
        "of message-sweep, allreduce, 1x2 ranks" in small.claim
        and "6 pairs of the same repeat" in small.evidence
    )


def test_a_version_says_whose_it_is():
    for words, said in (("0.31", "podman 0.31"), ("podman version 4.3.1", "podman version 4.3.1")):
        told = {"environment": {"wrapper_version": words}}
        made = [one.model_copy(update={"provenance": told}) for one in records()]
        found = findings(*made)["container"]
        assert any(one.evidence.endswith(f"; {said}") for one in found), [f.evidence for f in found]


def test_ranks_that_share_cores_decide_nothing():
    (found,) = (
        one
        for one in findings(*records(later=5, over=True))["container"]
        if "start-up" in one.claim
    )
    assert (
        "its ranks share cores, so it decides nothing" in found.claim and found.sureness == "open"
    )


def answer(*made: list[Record]):
    return published_answer(costs([one for part in made for one in part]).values())


def test_the_published_claim_needs_every_interval():
    assert answer(records(noise=0.002)).verdict == "little"
    assert answer(records(step=1.2)).verdict == "not little"
    # Too few pairs, a wide interval, shared cores: nothing is decided.
    assert answer(records(repeats=3)).verdict == "open"
    assert answer(records(noise=0.2)).verdict == "open"
    assert answer(records(over=True)) is None
    assert published_answer([]) is None


def test_the_claim_is_a_row_and_a_finding():
    (said,) = findings(*records(noise=0.002))["container claim"]
    assert (
        said.subject == "claims"
        and "no timings published: a container costs little here" in said.claim
    )


def section(made: list[Record]):
    context = Context(Loaded(study="s", records=made), title="t")
    (one,) = (part for part in all_parts().sections if part.key == "containers")
    return make_section(one, context)


def test_the_section_lists_pairs_and_what_did_not_run():
    absent = make_record(
        cell("enroot", 0),
        status=Status.SKIPPED,
        cause=Cause.MISSING_DEPENDENCY,
        message="enroot is not on PATH <b>",
    )
    made = section([*records(later=0.2), absent])
    tables = [block for block in made.body.blocks if isinstance(block, Table)]
    assert len(tables) == 4, "start-up, step, the published claim, what did not run"
    (row,) = tables[0].rows
    assert row[0] == "podman" and row[-1].text == "longer"
    assert (
        isinstance(tables[1].rows[0][-1], Chip)
        and tables[1].rows[0][-1].text == "the same within 5 %"
    )
    assert tables[2].rows[0][2] == "no timings"
    assert "enroot is not on PATH" in str(tables[3].rows[0][0])


def test_one_row_of_many_is_likely_at_most():
    def words(**of: float) -> set[str]:
        made = section(records(**of))
        tables = [block for block in made.body.blocks if isinstance(block, Table)][:2]
        return {row[-1].text for one in tables for row in one.rows}

    # Noise that hides nothing, some, and all: in between a row is likely before it is open.
    said = [words(later=0.2, step=1.1, noise=noise) for noise in (0.004, 0.03, 0.05, 0.3)]
    assert said[0] == {"longer"} and said[-1] == {"open: within noise"}
    assert any("likely longer" in one for one in said[1:-1]), said


def test_a_study_without_containers_has_no_such_section():
    made = section([one for one in records() if one.cell.container is None])
    assert made is None or not made.body.blocks


def test_a_container_is_no_base_of_another_training():
    groups = group_records(records())
    kinds = {group.cell.container: group.kind for group in groups}
    assert kinds[None] != kinds["podman"] and kinds["podman"].words == "in podman"
