"""HPL-MxP and HPCG logs, and what each benchmark of processors says of its end. All numbers are ours."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from compute_logs import (
    BABEL,
    BABEL_5,
    BABEL_CSV,
    BABEL_MOJO,
    BABEL_TRIAD,
    BUDE,
    BUDE_CSV,
    BUDE_KERNEL,
    BUDE_V1,
    D500,
    printed,
)
from log_scan import scan
from solver_logs import (
    HPCG,
    HPCG_2017,
    HPCG_AMD,
    HPCG_INTEL,
    HPCG_YAML,
    MXP,
    MXP_AMD,
    MXP_OLD_REFERENCE,
    MXP_REFERENCE,
    MXP_RIKEN,
)


def _sub(pattern: str, by: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, by, text)


def _until(mark: str, tail: str = "") -> Callable[[str], str]:
    return lambda text: text[: text.index(mark)] + tail


CASES = [
    # log, change, status of the last run, part of its reason
    (MXP, _sub("PASSED", "FAILED"), "invalid", "7.654321E-04 FAILED"),
    (MXP, _sub(r"7.654321E-04", "-nan"), "invalid", "-nan"),
    (MXP, _sub(r"7.654321E-04", "1.7E+01"), "invalid", "1.7E+01 is not below 1.600000E+01"),
    (MXP, _sub(r"(\W)3.0544e", r"\g<1>9.9e"), "invalid", "9.9e+04 GFLOP/s, but N = 40960"),
    (MXP, _sub(r"15271.83", "30543.67"), "invalid", "30543.67 GFLOP/s per GPU on 2"),
    (MXP, _sub(r"GFLOPS = 3.0544e\+04", "GFLOPS = nan"), "invalid", "nan"),
    (MXP, _sub(r"GFLOPS = 3.0544e\+04", "GFLOPS = -3.0e+04"), "invalid", "negative"),
    (MXP, _until("LU seconds"), "truncated", "0 of 1"),
    (MXP, _until("LU seconds", "MPI_ABORT was invoked on rank 1\n"), "failed", "MPI_ABORT"),
    (MXP, lambda t: "srun: error: n1: task 0: Killed\n" + t, "ok", ""),
    (MXP, _sub("loop 1 of 1", "loop 1 of 3"), "truncated", "1 of 3"),
    (MXP_REFERENCE, _sub("PASSED", "FAILED"), "invalid", "FAILED"),
    (MXP_REFERENCE, _until("Total time"), "truncated", "no rate"),
    (MXP_OLD_REFERENCE, _sub("PASSED", "DID NOT PASS"), "invalid", "FAILED"),
    (MXP_RIKEN, _sub(r"sec. 0.72", "sec. 7.72"), "invalid", "7.721350000"),
    (MXP_RIKEN, _sub(r"0.181652325", "99.5"), "invalid", "99.5 is not below"),
    (MXP_AMD, _sub(r"2.083e\+03", "9.083e+03"), "invalid", "9.083e+03"),
    (HPCG, _sub("is VALID.*", "is=INVALID."), "invalid", "HPCG result is INVALID"),
    (
        HPCG,
        lambda t: t.replace("is VALID with a GFLOP/s rating of=1.35932", "is=INVALID.").replace(
            "Tests::Result=PASSED", "Tests::Result=FAILED"
        ),
        "invalid",
        "Spectral",
    ),
    (HPCG, _sub("Tests::Result=PASSED", "Tests::Result=FAILED"), "invalid", "VALID, but FAILED"),
    (HPCG, _sub("rating of=1.35932", "rating of=9.35932"), "invalid", "9.35932"),
    (HPCG, _sub("1.35932", "1.45"), "invalid", "1.45"),
    (HPCG, _sub("Raw MG=1.52849", "Raw MG=9.9"), "invalid", "9.9 GFLOP/s as rate of MG"),
    (HPCG, _sub("Equations=524288", "Equations=524289"), "invalid", "524289"),
    (HPCG, _sub("rating of=1.35932", "rating of=nan"), "invalid", "nan"),
    (HPCG, _until("Final Summary="), "truncated", "before the rating"),
    (HPCG, _until("Benchmark Time", "Segmentation fault (core dumped)\n"), "failed", "Segm"),
    (HPCG, _until("Release date"), "truncated", "before the rating"),
    (HPCG, lambda t: "HPCG-NVIDIA 25.4.0  -- NVIDIA accelerated HPCG benchmark\n" + t, "ok", ""),
    (HPCG, lambda t: t[t.index("Final Summary::HPCG") :], "ok", ""),
    (HPCG_YAML, _sub("HPCG result is VALID.*", "HPCG result is: INVALID."), "invalid", "INVALID"),
    (HPCG_2017, _sub("final =  155.0", "final =  455.0"), "invalid", "exceeds the raw"),
    (HPCG_2017, _sub(" 70.1 GF_per", " 90.1 GF_per"), "invalid", "90.1 GFLOP/s on each of 2"),
    (HPCG_2017, _until("final"), "truncated", "before the rating"),
    (HPCG_AMD, lambda t: t + "*** WARNING *** THIS IS NOT A VALID RUN ***\n", "invalid", "INVALID"),
    (BABEL, _sub("Function", "Validation failed on a[]. Average error 0.25\nFunction"), "invalid", "a[]"),
    (BABEL, lambda t: t + "Validation failed on sum. Error 0.5\n", "invalid", "sum"),
    (BABEL, _sub(r"19200.000  ", "99200.000  "), "invalid", "99200.000 MB/s, but"),
    (BABEL, _sub(r"19200.000  ", "-19200.000 "), "invalid", "negative"),
    (BABEL, _sub(r"19200.000  ", "nan        "), "invalid", "triad: the rate is nan"),
    (BABEL, _until("Dot "), "truncated", "no row for dot"),
    (BABEL, _until("Triad ", "srun: error: n1: task 0: Out Of Memory\n"), "failed", "Out Of"),
    (BABEL, _until("Function"), "truncated", "before the table"),
    (BABEL, lambda t: t[t.index("Function") :], "ok", ""),
    (BABEL_5, lambda t: "srun: error: n1: x\n" + t, "ok", ""),
    (BABEL_CSV, _sub(",19200,", ",92000,"), "invalid", "92000 MB/s, but"),
    (BABEL_CSV, _until("Add,"), "truncated", "no row for add, triad, dot"),
    (BABEL_MOJO, _sub("19.2", "91.2"), "invalid", "91.2 GB/s, but"),
    # The Java port divides by 10^6 and writes GB/s, and forgets a line end.
    (
        BABEL_TRIAD,
        lambda t: t.replace("0\nBandwidth (GB/s):  19.200", "0Bandwidth (GB/s): 19200.000 "),
        "invalid",
        "19200.000 GB/s, but",
    ),
    (BABEL_TRIAD, _until("Runtime"), "truncated", "before the table"),
    ("Unrecognized argument '--triad-only' (try '--help')\n", str.upper, "no-result", ""),
    (BUDE, _sub("54.233", "94.233"), "invalid", "94.233 GFLOP/s, but"),
    (BUDE, _sub(r"true, max_diff_%: 0.000", "false, max_diff_%: 37.5"), "invalid", "wrong energies"),
    (BUDE, _sub(r"\[80,70,60,60\]", "[80,70,60,99]"), "invalid", "raw iterations sum"),
    (BUDE, _sub(r"sum_ms:              120", "sum_ms:              999"), "invalid", "2 iterations"),
    (BUDE, _until("  - outcome:             { valid: true, max_diff_%: 0.000"), "truncated", "1 of 2"),
    (BUDE, _until("results:", "terminate called after throwing\n"), "failed", "terminate called"),
    (BUDE_CSV, _sub("54.233", "154.233"), "invalid", "operations each"),
    (BUDE_CSV, _sub("ppwi=4,wgsize=1,valid=1", "ppwi=4,wgsize=1,valid=0"), "invalid", "wrong"),
    (BUDE_CSV, _until("4,1,120"), "ok", ""),
    (BUDE_V1, _sub("65.581", "-65.581"), "invalid", "negative"),
    (BUDE_V1, _sub("65.581", "6558100"), "invalid", "operations each"),
    (BUDE_V1, _sub("65.581", "165.581"), "invalid", "operations each"),
    (BUDE_V1, _sub("50.000\n", "70.000\n"), "invalid", "70.000 GFInst/s"),
    (BUDE_V1, _sub("0.002%", "12.5%"), "invalid", "12.5 %"),
    (BUDE_V1, _until("- GFLOP"), "truncated", "no GFLOP/s"),
    (BUDE_V1, _until("- Total"), "truncated", "0 results"),
    (BUDE_KERNEL, _sub("65.581", "75.581"), "invalid", "75.581 GFLOP/s, but"),
    (D500, _sub("TestAccuracy: 95.0625", "TestAccuracy: 59.0625"), "invalid", "59.0625"),
    (D500, _sub("Accuracy: 9", "Accuracy: 109"), "invalid", "not within"),
    (D500, _sub("TestAccuracy: 95.0625", "TestAccuracy: nan"), "invalid", "TestAccuracy is nan"),
    (D500, _sub("loss_avg=0.2", "loss_avg=nan"), "invalid", "loss_avg=nan"),
    (D500, _sub("Accuracy: .*", "Accuracy: -1.0"), "invalid", "no accuracy"),
    (D500, _until("TrainingAccuracy"), "truncated", "2 of 2 epochs"),
    (D500, _until("Training (epoch 2", "RuntimeError: CUDA out of memory\n"), "failed", "CUDA out"),
]


@pytest.mark.parametrize(("log", "change", "status", "reason"), CASES, ids=[f"{i}-{c[2]}" for i, c in enumerate(CASES)])
def test_status_and_reason(log: str, change: Callable[[str], str], status: str, reason: str) -> None:
    changed = change(log)
    assert changed != log
    run = scan(changed)[-1]
    assert run.status == status, run.reason
    assert reason in run.reason


def test_hpl_mxp_takes_the_rate_to_report_and_names_the_precision() -> None:
    (run,) = scan(MXP)
    assert (run.variant, run.version) == ("nvidia", "24.9.0")
    assert (printed(run, "lu_gflops"), printed(run, "residual")) == ("9.1631e+04", "7.654321E-04")
    assert run.parameters["SLOPPY-TYPE"] == "2" and run.parameters["precision"] == "FP16"
    (newer,) = scan(MXP.replace("SLOPPY-TYPE = 2", "SLOPPY-TYPE = FP8"))
    assert newer.parameters["precision"] == "FP8"


def test_hpl_mxp_yields_each_loop() -> None:
    head, loop = MXP[: MXP.index(" ****** test loop")], MXP[MXP.index(" ****** test loop") :]
    loops = [loop.replace("loop 1 of 1", f"loop {i} of 2") for i in (1, 2)]
    assert [r.status for r in scan(head + "".join(loops))] == ["ok", "ok"]
    runs = scan(head + loops[0] + loops[1][: loops[1].index("Threshold")])
    assert [r.status for r in runs] == ["ok", "truncated"]


def test_hpl_ai_row_of_the_first_nvidia_containers() -> None:
    (run,) = scan(
        "HPL_AI   WR00C4C4  50000  256  1  2  40.00  4.000e+03  20.00  2  2.083e+03\n"
        "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0020000 ...... PASSED\n"
    )
    assert (run.status, printed(run), printed(run, "lu_gflops")) == ("ok", "2.083e+03", "4.000e+03")
    assert run.parameters["N"] == 50000


def test_hpcg_variants_and_parameters() -> None:
    for log, variant, version in (
        (HPCG, "reference", "3.1"),
        (HPCG_YAML, "reference", "3.0"),
        (HPCG_INTEL, "intel", "V3.1"),
    ):
        (run,) = scan(log)
        assert (run.variant, run.version) == (variant, version)
        assert (run.parameters["ranks"], run.parameters["threads"]) == (2, 4)
        assert (run.parameters["Global nx"], run.parameters["nx"]) == (128, 64)
        assert run.parameters["Number of Equations"] == 524288
        assert (printed(run, "time"), printed(run, "hpcg24_rating")) == ("20.5", "1.37496")
        assert any("1800 s" in w for w in run.warnings)
    (run,) = scan(HPCG_2017)
    assert run.variant == "nvidia" and any("no VALID" in w for w in run.suspicions)
    assert scan(HPCG_AMD)[0].variant == "amd"


def test_hpcg_rating_line_of_another_run_is_a_run_of_its_own() -> None:
    runs = scan("HPCG result is VALID with a GFLOP/s rating of 7.5\n" + HPCG)
    assert [printed(r) for r in runs] == ["7.5", "1.35932"]
    runs = scan(HPCG + "HPCG result is VALID with a GFLOP/s rating of 7.5\n")
    assert [printed(r) for r in runs] == ["1.35932", "7.5"]


def test_a_quick_run_of_hpcg_may_count_a_part_of_its_setup() -> None:
    statuses = [str(scan(HPCG.replace("1.35932", told))[0].status) for told in ("1.366", "1.357", "1.377")]
    assert statuses == ["ok", "invalid", "invalid"]


def test_hpcg_of_version_2_does_not_count_the_setup() -> None:
    old = HPCG.replace("version=3.1", "version=2.4").replace("1.35932", "1.37496")
    assert [r.status for r in scan(old)] == ["ok"]


@pytest.mark.parametrize(
    ("option", "benchmark"), [("--triad-only", "babelstream"), ("--ppwi", "minibude"), ("--foo", "unknown")]
)
def test_a_refused_option_belongs_to_the_program_that_has_it(option: str, benchmark: str) -> None:
    (run,) = scan(f"Unrecognized argument '{option}' (try '--help')\n")
    assert run.benchmark == benchmark
    assert run.status == ("no-result" if benchmark == "unknown" else "failed")
