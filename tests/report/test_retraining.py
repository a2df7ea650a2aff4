"""The retraining section and its findings: right paths, step times, relays, factors of a gain."""

from __future__ import annotations

from functools import partial

import pytest
from make_retrain_records import (
    factor_records,
    lacking,
    published_like,
    retrain_record,
    write_retrain_study,
)
from said_of_records import Made as Section
from said_of_records import context, findings, only, rows

from transect.analysis.comparisons import Sureness
from transect.domain.record import Cause, Status
from transect.report.build import build_report
from transect.report.making import all_parts, make_findings, make_section

WRONG = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "the loss is 9 at step 4"}
DIVERGED = {"status": Status.FAILED, "cause": Cause.DIVERGED, "message": "not finite at step 3"}


# The section that records make.
Made = partial(Section, "retraining")


def runs(runtime: str, step_s: float, **more):
    """Six runs that differ by a thousandth each."""
    return [retrain_record(runtime, n, step_s=step_s * (1 + n / 1000), **more) for n in range(6)]


def test_without_retraining_there_is_nothing():
    [section] = [one for one in all_parts().sections if one.key == "retraining"]
    assert make_section(section, context()) is None
    assert not [kind for kind in findings() if kind.startswith("retraining")]


def test_the_fastest_portable_step_stands_beside_pytorch_and_onnx_runtimes_training():
    found = only("retraining-speed", *runs("c", 1e-4), *runs("python", 2e-4),
                 *runs("torch-eager", 4e-4), *runs("ort-training", 1.5e-4))  # fmt: skip
    assert found.text.startswith(
        "digits sgd, batch 8, 1 thread: the fastest portable step is c's, 100 µs: "
    )
    assert "0.667 times that of ort-training (95 % interval " in found.text
    assert "0.25 times that of torch-eager" in found.text
    assert found.sureness is Sureness.FIRM and "slowest: python" in found.evidence


def test_steps_that_cannot_be_told_apart_are_not_called_faster():
    found = only("retraining-speed", *runs("c", 1e-4), *runs("torch-eager", 1e-4))
    assert "the same within 5 %" in found.text and "cannot tell" not in found.text
    assert found.sureness is Sureness.FIRM


def test_the_noise_of_steps_is_told():
    made = context(*runs("c", 1e-4), *runs("torch-eager", 4e-4))
    [noise] = [f for f in make_findings(made, all_parts().findings) if f.kind == "noise"]
    assert "differ by 0.5 % in the step of a retraining" in noise.text


def test_a_wrong_runtime_has_no_part_in_the_race_and_is_named():
    bad = retrain_record("c", step_s=1e-9, ratio=80.0, fields=WRONG)
    records = [bad, *runs("python", 2e-4), *runs("torch-eager", 4e-4)]
    assert "python's" in only("retraining-speed", *records).text
    path = only("retraining-path", *records)
    assert path.text == (
        "12 of 13 retrainings by 2 runtimes computed PyTorch's float64 path, at most 2.0 % of the "
        "tolerance off; 1 gave another one."
    )
    assert "the loss is 9 at step 4" in path.evidence
    table = Made(*records).table(
        "digits, sgd, old rate, batch 8, 40 steps, from an accuracy of 40.0 %"
    )
    assert [row["Runtime"] for row in table] == ["python", "torch-eager", "c"]
    assert table[2]["Loss path and weights"] == "wrong result" and table[2]["Step"] == "–"


def test_a_diverged_run_is_no_wrong_path():
    found = only("retraining-path", retrain_record("c", fields=DIVERGED), *runs("python", 2e-4))
    assert "another one" not in found.text and "without a path to compare" in found.evidence


def test_a_path_that_cannot_be_told_from_others_makes_nothing_firm():
    blind = {"not_checkable_from": 12}
    found = only("retraining-path", *runs("python", 2e-4, details=blind))
    assert found.sureness is Sureness.TENTATIVE
    made = Made(*runs("python", 2e-4, details=blind))
    assert "cannot tell from step 12" in made.table("digits")[0]["Loss path and weights"]


RELAY = "rust>javascript>browser>python"


def test_a_relay_is_drawn_in_the_colours_of_its_runtimes_beside_one_that_never_changed():
    made = Made(retrain_record(RELAY), retrain_record("python"))
    chart = made.chart("Loss of rust → javascript → browser → python")
    assert [item.text for item in chart.legend] == [*RELAY.split(">"), "PyTorch, float64"]
    turns = rows(chart.table)
    assert [(row["Runtime"], row["From step"], row["To step"]) for row in turns] == [
        ("rust", "0", "9"), ("javascript", "10", "19"), ("browser", "20", "29"), ("python", "30", "39"),
    ]  # fmt: skip
    [row] = made.table("Relays beside")
    assert (row[""], row["to"], row["Largest difference"]) == ("the same path", "python alone", "0")
    assert made.chart("Deviation from PyTorch's float64 path").table.rows


def test_a_relay_that_holds_is_a_finding_and_one_that_does_not_is_another():
    found = only("retraining-relay", retrain_record(RELAY))
    assert found.text == (
        "digits 10 steps each: rust → javascript → browser → python, each from the state that the one "
        "before left, computed the path of 40 steps without a change, at most 2.0 % of the tolerance off."
    )
    assert found.sureness is Sureness.FIRM
    found = only("retraining-relay", retrain_record("c>python", off=1.0, ratio=9.0, fields=WRONG))
    assert "c → python did not follow the path: the loss is 9 at step 4." in found.text
    # What no run tells is drawn by nobody.
    assert not Made(retrain_record("c>python", off=1.0, fields=WRONG)).charts


def test_a_gain_is_shared_out_to_its_factors_with_intervals():
    found = findings(*factor_records(published_like()), *lacking())
    [gain] = found["retraining-gain"]
    assert gain.scope == "from a base of 1 epoch, batch 8" and gain.sureness is Sureness.FIRM
    assert "changing sgd → adamw and old → new and torch-eager → python at once" in gain.claim
    # .45 -> .75: with both at once AdamW gains .25, and then the rate .05, or .20 and then .10.
    assert "the optimiser's part is +17" in gain.claim and "the rate's part is +12" in gain.claim
    assert gain.claim.endswith(", which contains 0).") and "the runtime's part is" in gain.claim
    assert "ort-training with sgd (momentum: SGDOptimizerV2 has none)" in gain.evidence
    [factor] = found["retraining-factor"]
    assert "runtime: torch-eager → ort-training, with adamw " in factor.claim
    assert "rate: old → new, with sgd +2" in factor.evidence
    assert "rate: old → new, with adamw +" in factor.evidence


def test_effects_that_contain_0_decide_nothing():
    flat = dict.fromkeys(published_like(), 0.6)
    found = findings(*factor_records(flat))
    [gain], [factor] = found["retraining-gain"], found["retraining-factor"]
    assert gain.sureness is factor.sureness is Sureness.OPEN
    assert factor.claim.count("which contains 0") == 5


def test_a_runtime_that_changes_no_score_is_told_so():
    found = only("retraining-gain", *factor_records(published_like(), spread=0.0))
    assert found.claim.endswith("the runtime's part is 0.0 (in every seed).")


@pytest.mark.parametrize(("seeds", "words"), [(1, "one seed"), (3, "range ")])
def test_few_seeds_give_no_interval(seeds, words):
    found = findings(*factor_records(published_like(), seeds))["retraining-gain"][0]
    assert words in found.claim and "95 %" not in found.claim
    assert found.sureness is (Sureness.OPEN if seeds == 1 else Sureness.TENTATIVE)


def test_a_seed_that_lacks_a_combination_is_left_out_and_counted():
    records = factor_records(published_like())
    gone = next(r for r in records if r.cell.repeat == 2 and r.cell.rate == "schedule")
    again = retrain_record(gone.cell.runtime, 2, optimiser=gone.cell.optimiser, rate="schedule",
                           base_epochs=1, fields=DIVERGED)  # fmt: skip
    kept = [again if record is gone else record for record in records]
    found = only("retraining-gain", *kept)
    assert "5 seeds with equal data and base in all combinations, 1 more lack" in found.evidence
    assert found.sureness is Sureness.TENTATIVE
    assert any("1 seed left out" in (one.caption or "") for one in Made(*kept).tables)


def test_where_no_seed_has_all_nothing_is_said_of_factors():
    scores = {("sgd", "old", "python"): 0.4, ("adamw", "new", "python"): 0.7}
    [first, second] = factor_records(scores, 2)[0], factor_records(scores, 2)[3]
    assert "retraining-factor" not in findings(first, second)
    assert "not known" in only("retraining-gain", first, second).claim


def test_effects_are_drawn_with_a_rule_at_0_and_every_combination_is_listed():
    made = Made(*factor_records(published_like()), *lacking())
    chart = made.chart("Effect on the accuracy after 40 steps")
    effects = {row["Change"]: row for row in rows(chart.table)}
    assert effects["runtime: torch-eager → python"][""] == "contains 0"
    assert effects["rate: old → new"][""] == "shown"
    assert effects["rate: old → new, with sgd"]["Seeds"] == "6"
    table = made.table("Accuracy after 40 steps, from a median of 40.0 %")
    assert len(table) == 15 and table[0]["Optimiser"] == "sgd" and table[0]["Rate"] == "old"


def test_a_whole_report_can_be_made_of_it(tmp_path):
    study = write_retrain_study(tmp_path)
    out = tmp_path / "report.html"
    build_report(study, out, title="Again", questions=[])
    page = out.read_text()
    assert "Retraining" in page and "rust → javascript → browser → python" in page
    assert "<script>window.HACKED" not in page
