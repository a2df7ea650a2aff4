"""HPL-MxP and HPCG logs, and what each benchmark of processors says of its end. All numbers are ours."""

from __future__ import annotations

import pytest
from compute_logs import printed
from log_scan import scan
from solver_logs import HPCG, HPCG_2017, HPCG_AMD, HPCG_INTEL, HPCG_YAML, MXP


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
    statuses = [str(scan(HPCG.replace("1.35932", rating))[0].status) for rating in ("1.366", "1.357", "1.377")]
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
