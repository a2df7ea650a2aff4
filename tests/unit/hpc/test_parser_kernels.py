"""Logs of BabelStream, miniBUDE and Deep500: what they state."""

from __future__ import annotations

import re

import pytest
from compute_logs import BABEL, BABEL_CSV, BABEL_FLOAT_MIB, BUDE, BUDE_CSV, BUDE_V1, D500, printed
from log_scan import scan

from transect.hpc.parsers.minibude import minibude_gflop


def test_babelstream_units_precision_and_normalised_values() -> None:
    (run,) = scan(BABEL_FLOAT_MIB)
    triad = run.metric("triad")
    assert triad is not None and triad.unit == "MiB/s" and triad.normalised is not None
    assert triad.normalised.value == pytest.approx(9.6e9, rel=1e-6)
    assert (run.variant, run.parameters["precision"]) == ("SYCL2020", "float")
    giga = BABEL.replace("MBytes/sec", "GBytes/sec").replace("000.000", ".000").replace("19200.000", "19.200")
    assert [r.status for r in scan(giga)] == ["ok"]


def test_babelstream_of_fortran_and_nstream() -> None:
    fortran = BABEL.replace("BabelStream\n", "BabelStream Fortran\n").replace("32.0 MB", "     32.0MB ")
    assert [r.status for r in scan(fortran)] == ["ok"]
    table = BABEL.index("Copy ")
    only = BABEL[:table] + "Nstream     25600.000   0.00500     0.00600     0.00550\n"
    (run,) = scan(only)
    assert run.status == "ok" and printed(run, "nstream") == "25600.000"


def test_babelstream_rate_that_fills_its_column() -> None:
    packed = BABEL.replace("Array size: 32.0", "Array size: 48000.0").replace(
        "Triad       19200.000   0.00500 ", "Triad       28800000.0000.00500 "
    )
    packed = packed.replace("000.000   0.00", "000.000   6.00").replace("0.00500", "0.00500")
    (run,) = scan(packed)
    assert printed(run) == "28800000.000" and printed(run, "triad_minimum_time") == "0.00500"


def test_babelstream_csv_of_julia_prints_all_bytes_as_sizeof() -> None:
    lines = BABEL_CSV.splitlines()
    sizes = {"Copy": 64, "Mul": 64, "Add": 96, "Triad": 96, "Dot": 64}
    julia = [lines[0]] + [line.replace("4000000,8", f"4000000,{sizes[line.split(',')[0]]}000000") for line in lines[1:]]
    assert [r.status for r in scan("\n".join(julia) + "\n")] == ["ok"]


def test_babelstream_tables_of_ranks() -> None:
    lines = BABEL.splitlines()
    labelled = "".join(f"{rank:2d}: {line}\n" for line in lines for rank in range(8))
    runs = scan(labelled)
    assert [r.status for r in runs] == ["ok"] * 8 and not any(r.warnings for r in runs)
    runs = scan("".join(f"{line}\n" * 8 for line in lines))
    assert [r.status for r in runs] == ["ok"] * 8 and all("rank labels" in r.warnings[0] for r in runs)


def test_minibude_counts_as_its_source_does() -> None:
    assert minibude_gflop(10000, 20, 500, 1) / 0.1 == pytest.approx(40.0428)
    assert minibude_gflop(10000, 20, 500, 4, version=1) / 0.05 == pytest.approx(65.5806)


def test_minibude_keeps_poses_per_work_item_and_raw_iterations() -> None:
    single, four = scan(BUDE)
    assert (single.parameters["ppwi"], four.parameters["ppwi"]) == (1, 4)
    assert (single.parameters["poses"], single.parameters["deck_poses"]) == (10000, 65536)
    assert single.samples["iterations"].values == [150.5, 120.0, 99.0, 101.0]
    assert (single.version, single.variant) == ("2.1.0", "v2")
    assert [r.parameters["ppwi"] for r in scan(BUDE_CSV)] == [1, 4]


def test_minibude_skipped_sizes_are_not_missing() -> None:
    note = " # WARNING: pose count 10000 % (1 (wgsize) * 3 (ppwi)) != 0, skipping\n"
    skipped = BUDE.replace("selected:   [1,4]", "selected:   [1,3,4]").replace("results:", note + "results:")
    assert [r.status for r in scan(skipped.replace("best:", "xbest:"))] == ["ok", "ok"]


def test_minibude_invalid_rows_hold_the_largest_double() -> None:
    huge = "1" + "7" * 308 + ".000"
    row = f"4,1,{huge},{huge},{huge},{huge},0.000,0.000,0.000,0.000"
    text = re.sub(r"(?m)^4,1,.*$", row, BUDE_CSV).replace("ppwi=4,wgsize=1,valid=1", "ppwi=4,wgsize=1,valid=0")
    runs = scan(text)
    assert [r.status for r in runs] == ["ok", "invalid"]


def test_minibude_blocks_without_a_deck_are_all_found() -> None:
    block = BUDE_V1[BUDE_V1.index("- Total") : BUDE_V1.index("Largest")]
    text = f"miniBUDE:\nUsing kernel parameters: <<<256,64>>> 1:65536\n{block}\nminiBUDE port:\n{block}"
    runs = scan(text)
    assert [r.status for r in runs] == ["ok", "ok"]
    assert (runs[0].parameters["wgsize"], runs[1].parameters["label"]) == (64, "miniBUDE port")


def test_deep500_keeps_epochs_apart_from_progress() -> None:
    (run,) = scan(D500)
    rates = [(m.phase, m.printed) for m in run.metrics if m.name == "training_rate"]
    assert rates == [("epoch 1", "25.00"), ("epoch 2", "24.50")]
    assert run.parameters == {"epochs": 2, "batches_per_epoch": 100}
    accuracy = run.metric("TestAccuracy")
    assert accuracy is not None and accuracy.normalised is not None
    assert accuracy.normalised.value == pytest.approx(0.950625)
    slow = D500.replace("25.00it/s", "2.00s/it")
    assert scan(slow)[0].samples["training_rate"].values[0] == 0.5


def test_deep500_metrics_alone_and_other_peoples_bars() -> None:
    (run,) = scan("WallclockTime: 12.50 ms\nMaxError: 1e-07\n")
    assert (run.variant, run.status, printed(run, "MaxError")) == ("metrics", "ok", "1e-07")
    (stranger,) = scan("Testing: 100%|####| 20/20 [00:04<00:00, 5.00it/s]\n")
    assert stranger.benchmark == "unknown"
