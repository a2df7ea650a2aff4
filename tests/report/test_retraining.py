"""The retraining section and its findings: right paths, step times, relays, factors of a gain."""

from __future__ import annotations

import statistics
from functools import partial

import pytest
from make_retrain_records import factor_records, lacking, published_like, retrain_record
from said_of_records import Made as Section
from said_of_records import Sets, context, only, prose

from transect.domain.record import Cause, Status
from transect.report.topics.retraining.facts import attribution, designs, effects
from transect.stats.comparisons import Confidence

WRONG = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "the loss is 9 at step 4"}
DIVERGED = {"status": Status.FAILED, "cause": Cause.DIVERGED, "message": "not finite at step 3"}


# The section that records make.
Made = partial(Section, "retraining")


def runs(runtime: str, step_s: float, **more):
    """Six runs that differ by a thousandth each."""
    return [retrain_record(runtime, n, step_s=step_s * (1 + n / 1000), **more) for n in range(6)]


RELAY = "rust>javascript>browser>python"
BLIND = {"not_checkable_from": 12}


def one_wrong():
    bad = retrain_record("c", step_s=1e-9, ratio=80.0, fields=WRONG)
    return [bad, *runs("python", 2e-4), *runs("torch-eager", 4e-4)]


def one_lacks():
    """Make a seed that lacks a combination."""
    records = factor_records(published_like())
    gone = next(r for r in records if r.cell.repeat == 2 and r.cell.rate == "schedule")
    again = retrain_record(
        gone.cell.runtime, 2, optimiser=gone.cell.optimiser, rate="schedule", base_epochs=1, fields=DIVERGED
    )
    return [again if record is gone else record for record in records]


def two_seeds_apart():
    """Make a seed of one combination, and another one of the other."""
    scores = {("sgd", "old", "python"): 0.4, ("adamw", "new", "python"): 0.7}
    records = factor_records(scores, 2)
    return [records[0], records[3]]


SETS = Sets(
    speed=lambda: [*runs("c", 1e-4), *runs("python", 2e-4), *runs("torch-eager", 4e-4), *runs("ort-training", 1.5e-4)],
    alike=lambda: [*runs("c", 1e-4), *runs("torch-eager", 1e-4)],
    rust_alike=lambda: [*runs("c", 1e-4), *runs("torch-eager", 4e-4), *runs("rust", 1.0001e-4)],
    rust_in_noise=lambda: [
        *runs("c", 1e-4),
        *runs("torch-eager", 4e-4),
        *[retrain_record("rust", n, step_s=1.05e-4 * (1 + n / 5)) for n in range(2)],
    ],
    apart=lambda: [*runs("c", 1e-4), *runs("torch-eager", 4e-4)],
    one_wrong=one_wrong,
    diverged=lambda: [retrain_record("c", fields=DIVERGED), *runs("python", 2e-4)],
    blind=lambda: runs("python", 2e-4, details=BLIND),
    relay=lambda: [retrain_record(RELAY)],
    relay_that_left=lambda: [retrain_record("c>python", off=1.0, ratio=9.0, fields=WRONG)],
    factors=lambda: [*factor_records(published_like()), *lacking()],
    flat=lambda: factor_records(dict.fromkeys(published_like(), 0.6)),
    exact=lambda: factor_records(published_like(), spread=0.0),
    one_seed=lambda: factor_records(published_like(), 1),
    three_seeds=lambda: factor_records(published_like(), 3),
    one_lacks=one_lacks,
    two_seeds_apart=two_seeds_apart,
)


def test_prose(snapshot):
    kinds = ("retraining-speed", "retraining-path", "retraining-relay", "retraining-gain", "retraining-factor")
    noise = {"noise": SETS.only("noise", "apart").text}
    shown = ("one_wrong", "blind", "one_lacks", "factors")
    sections = {f"section of {name}": Made(*SETS[name]).prose for name in shown}
    sections["section of a relay"] = Made(retrain_record(RELAY), retrain_record("python")).prose
    assert prose(SETS, *kinds) | noise | sections == snapshot


def design(name):
    [found] = designs(context(*SETS[name]).of("retrain"))
    return found


def test_a_gain_is_shared_out_to_its_factors_with_intervals():
    found = design("factors")
    share = attribution(found, ("sgd", "old", "torch-eager"), ("adamw", "new", "python"))
    # .45 -> .75: with both at once AdamW gains .25, and then the rate .05, or .20 and then .10.
    parts = {factor: statistics.median(part) for factor, part in share.parts.items()}
    assert parts == pytest.approx({"optimiser": 0.175, "rate": 0.125, "runtime": 0.0}, abs=0.01)
    assert sum(parts.values()) == pytest.approx(share.gain.median, abs=0.01)
    assert min(share.parts["runtime"]) < 0 < max(share.parts["runtime"])
    assert len(found.absent) == 3
    assert not set(found.scores[0]) & {("sgd", rate, "ort-training") for rate in ("old", "new")}
    alone = {e.given["optimiser"]: e.summary.median for e in effects(found) if e.apart and e.after == "new"}
    assert alone == pytest.approx({("sgd",): 0.2, ("adamw",): 0.05}, abs=0.01)


def test_a_seed_that_lacks_a_combination_is_left_out_and_counted():
    found = design("one_lacks")
    assert (len(found.scores), found.lacking, 2 in found.scores) == (5, 1, False)
    assert not design("two_seeds_apart").scores


def test_an_interval_has_its_level_and_what_two_seeds_agree_on_may_be_chance():
    assert "96.9 % interval" in SETS.only("retraining-gain", "factors").claim
    gain = only("retraining-gain", *factor_records(published_like() | {("sgd", "old", "torch-eager"): 0.73}, 2))
    assert "range +0." in gain.claim and gain.confidence is Confidence.INCONCLUSIVE


def test_of_runtimes_whose_base_gave_nothing_it_is_said_that_nobody_knows():
    gone = [retrain_record("torch-eager", n, fields=DIVERGED) for n in range(6)]
    found = only("retraining-speed", *runs("c", 1e-4), *runs("rust", 2e-4), *gone)
    assert found.confidence is Confidence.INCONCLUSIVE
    assert "whether ONNX Runtime (Rust) is as fast is not known" in found.claim
