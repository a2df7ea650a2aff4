"""The retraining section and its findings: right paths, step times, relays, factors of a gain."""

from __future__ import annotations

from functools import partial

import pytest
from make_retrain_records import factor_records, lacking, published_like, retrain_record, write_retrain_study
from pages import Page
from said_of_records import Made as Section
from said_of_records import Sets, context, findings, prose, ratios, rows

from transect.analysis.comparisons import Confidence
from transect.analysis.retraining import attribution, designs, effects
from transect.domain.record import Cause, Status
from transect.report.build import build_report
from transect.report.making import all_parts, make_section

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
    sections = {f"section of {name}": Made(*SETS[name]).prose for name in ("one_wrong", "relay", "factors")}
    assert prose(SETS, *kinds) | noise | sections == snapshot


def test_without_retraining_there_is_nothing():
    [section] = [one for one in all_parts().sections if one.key == "retraining"]
    assert make_section(section, context()) is None
    assert not [kind for kind in findings() if kind.startswith("retraining")]


def test_the_fastest_portable_step_stands_beside_pytorch_and_onnx_runtimes_training():
    found = SETS.only("retraining-speed", "speed")
    assert (found.subject, found.scope) == ("digits", "sgd, batch 8, 1 thread")
    # 100 us beside 150 us of ort-training and 400 us of torch-eager, and 200 us of the next portable one.
    assert ratios(found) == pytest.approx([2 / 3, 1 / 4, 1 / 2], rel=1e-3)
    assert "c's, 100 µs" in found.claim and "0.25 times that" in found.claim
    assert found.claim.index("ort-training") < found.claim.index("torch-eager")
    assert found.confidence is Confidence.CONFIRMED and "slowest: python" in found.evidence


def test_steps_that_cannot_be_told_apart_are_not_called_faster():
    found = SETS.only("retraining-speed", "alike")
    assert [one.equal for one in found.comparisons] == [True] and found.confidence is Confidence.CONFIRMED
    assert "same within" in found.text and "cannot tell" not in found.text


@pytest.mark.parametrize(
    ("runs_of_rust", "said"),
    [
        (1.0001e-4, "c takes 100 µs, the same within 5 % as that of rust: "),
        (1.05e-4, "not told apart from that of rust: "),
    ],
)
def test_of_portable_steps_that_cannot_be_told_apart_none_is_the_fastest(runs_of_rust, said):
    records = [*runs("c", 1e-4), *runs("torch-eager", 4e-4)]
    if "same" in said:
        records += runs("rust", runs_of_rust)
    else:
        records += [retrain_record("rust", n, step_s=runs_of_rust * (1 + n / 5)) for n in range(2)]
    [found] = findings(*records)["retraining-speed"]
    assert said in found.claim and "fastest" not in found.claim
    assert found.confidence is Confidence.CONFIRMED and len(found.comparisons) == 2


def test_the_noise_of_steps_is_told():
    assert "0.5 % in the step" in SETS.only("noise", "apart").text


def test_a_wrong_runtime_has_no_part_in_the_race_and_is_named():
    assert "python's" in SETS.only("retraining-speed", "one_wrong").text
    path = SETS.only("retraining-path", "one_wrong")
    assert path.alarm and path.subject == "study" and path.confidence is Confidence.CONFIRMED
    for words in ("12 of 13", "2 runtimes", "most 2.0 %", "1 gave another"):
        assert words in path.text
    assert WRONG["message"] in path.evidence
    made = Made(*SETS["one_wrong"])
    assert {"digits", "sgd", "batch 8", "40 steps"} <= set(made.tables[0].caption.split(", "))
    table = made.table("digits, sgd")
    assert [row["Runtime"] for row in table] == ["python", "torch-eager", "c"]
    assert table[2]["Loss path and weights"] == "wrong result" and table[2]["Step"] == "–"


def test_a_diverged_run_is_no_wrong_path():
    found = SETS.only("retraining-path", "diverged")
    assert not found.alarm and "another one" not in found.text
    assert "diverged" in found.evidence and "wrong" not in found.evidence


def test_a_path_that_cannot_be_told_from_others_makes_nothing_confirmed():
    assert SETS.only("retraining-path", "blind").confidence is Confidence.PROVISIONAL
    [row] = Made(*SETS["blind"]).table("digits")
    assert "step 12" in row["Loss path and weights"]


def test_a_relay_is_drawn_in_the_colours_of_its_runtimes_beside_one_that_never_changed():
    made = Made(retrain_record(RELAY), retrain_record("python"))
    chart = made.chart("Loss of rust →")
    assert [item.text for item in chart.legend] == [*RELAY.split(">"), "PyTorch, float64"]
    turns = rows(chart.table)
    assert [(row["Runtime"], row["From step"], row["To step"]) for row in turns] == [
        ("rust", "0", "9"),
        ("javascript", "10", "19"),
        ("browser", "20", "29"),
        ("python", "30", "39"),
    ]
    [row] = made.table("Relays beside")
    assert (row[""], row["to"], row["Largest difference"]) == ("the same path", "python alone", "0")
    assert made.chart("Deviation").table.rows


def test_a_relay_that_holds_is_a_finding_and_one_that_does_not_is_another():
    found = SETS.only("retraining-relay", "relay")
    assert (found.subject, found.scope) == ("digits", "10 steps each")
    assert found.claim.startswith(RELAY.replace(">", " → "))
    assert "40 steps" in found.claim and "most 2.0 %" in found.claim
    assert found.confidence is Confidence.CONFIRMED
    left = SETS.only("retraining-relay", "relay_that_left")
    assert "did not" in left.claim and WRONG["message"] in left.claim
    # What no run tells is drawn by nobody.
    assert not Made(retrain_record("c>python", off=1.0, fields=WRONG)).charts


def design(name):
    [found] = designs(context(*SETS[name]).of("retrain"), "accuracy")
    return found


def test_a_gain_is_shared_out_to_its_factors_with_intervals():
    gain = SETS.only("retraining-gain", "factors")
    assert (gain.scope, gain.confidence) == ("from a base of 1 epoch, batch 8", Confidence.CONFIRMED)
    own = design("factors")
    share = attribution(own, ("sgd", "old", "torch-eager"), ("adamw", "new", "python"))
    # .45 -> .75: with both at once AdamW gains .25, and then the rate .05, or .20 and then .10.
    parts = {factor: part.median for factor, part in share.parts.items()}
    assert parts == pytest.approx({"optimiser": 0.175, "rate": 0.125, "runtime": 0.0}, abs=0.01)
    assert sum(parts.values()) == pytest.approx(share.gain.median, abs=0.01)
    assert share.parts["runtime"].low < 0 < share.parts["runtime"].high
    for words in ("sgd → adamw", "old → new", "torch-eager → python", "+17", "+12", "contains 0"):
        assert words in gain.claim
    # What a runtime does not offer is named with its reason.
    assert "momentum: SGDOptimizerV2" in gain.evidence and len(own.absent) == 3
    assert not set(own.scores[0]) & {("sgd", rate, "ort-training") for rate in ("old", "new")}
    factor = SETS.only("retraining-factor", "factors")
    assert "torch-eager → ort-training, with adamw" in factor.claim
    alone = {one.given["optimiser"]: one.summary.median for one in effects(own) if one.apart and one.after == "new"}
    assert alone == pytest.approx({("sgd",): 0.2, ("adamw",): 0.05}, abs=0.01)
    assert "with sgd +2" in factor.evidence and "with adamw +" in factor.evidence


def test_effects_that_contain_0_decide_nothing():
    [gain], [factor] = (SETS.findings("flat")[f"retraining-{kind}"] for kind in ("gain", "factor"))
    assert gain.confidence is factor.confidence is Confidence.INCONCLUSIVE
    own = [one for one in effects(design("flat")) if not one.apart]
    assert len(own) == factor.claim.count("contains 0") == 5
    assert not any(one.shown for one in own)


def test_a_runtime_that_changes_no_score_is_told_so():
    found = SETS.only("retraining-gain", "exact")
    share = attribution(design("exact"), ("sgd", "old", "torch-eager"), ("adamw", "new", "python"))
    assert (share.parts["runtime"].low, share.parts["runtime"].high) == pytest.approx((0, 0), abs=1e-12)
    assert found.claim.endswith("0.0 (in every seed).")


@pytest.mark.parametrize(
    ("name", "words", "confidence"),
    [("one_seed", "one seed", Confidence.INCONCLUSIVE), ("three_seeds", "range ", Confidence.PROVISIONAL)],
)
def test_few_seeds_give_no_interval(name, words, confidence):
    found = SETS.only("retraining-gain", name)
    assert words in found.claim and "95 %" not in found.claim and found.confidence is confidence


def test_a_seed_that_lacks_a_combination_is_left_out_and_counted():
    found, own = SETS.only("retraining-gain", "one_lacks"), design("one_lacks")
    assert (len(own.scores), own.lacking, 2 in own.scores) == (5, 1, False)
    assert "5 seeds" in found.evidence and "1 more" in found.evidence
    assert found.confidence is Confidence.PROVISIONAL
    tables = Made(*SETS["one_lacks"]).tables
    assert any("1 seed left" in (one.caption or "") for one in tables)


def test_where_no_seed_has_all_nothing_is_said_of_factors():
    assert not design("two_seeds_apart").scores
    found = SETS.findings("two_seeds_apart")
    assert "retraining-factor" not in found and found["retraining-gain"][0].confidence is Confidence.INCONCLUSIVE
    assert "not known" in found["retraining-gain"][0].claim


def test_effects_are_drawn_with_a_rule_at_0_and_every_combination_is_listed():
    made = Made(*SETS["factors"])
    chart = made.chart("Effect on the accuracy")
    drawn = {row["Change"].partition(": ")[2]: row for row in rows(chart.table)}
    assert drawn["torch-eager → python"][""] == "contains 0"
    assert drawn["old → new"][""] == "shown"
    assert drawn["old → new, with sgd"]["Seeds"] == "6"
    table = made.table("Accuracy after 40")
    assert len(table) == 15 and table[0]["Optimiser"] == "sgd" and table[0]["Rate"] == "old"


def test_a_whole_report_can_be_made_of_it(tmp_path):
    study = write_retrain_study(tmp_path)
    out = tmp_path / "report.html"
    build_report(study, out, title="Again", questions=[])
    page = Page.read(out)
    assert RELAY.replace(">", " → ") in page.section("retraining").text
    assert page.summary["problems"] == [] and "<script>window.HACKED" not in out.read_text()
