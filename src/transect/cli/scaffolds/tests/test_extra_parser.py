"""The parser extra-benchmark on a small log, whole and damaged.

Run it with pytest, by a Python that has transect. An environment that is missing is built first.
"""

from pathlib import Path

from transect.cli.check_plugin import know_plugins
from transect.cli.plugin_checks import answers, check_log
from transect.hpc.ingest import ingest

know_plugins(None, Path(__file__).resolve().parents[1])

LOG = Path(__file__).with_name("extra_parser.log")


def test_it_answers_as_its_kind_must():
    assert [check for check in answers("parser", "extra-benchmark") if not check.holds] == []


def test_it_reads_the_log_and_no_cut_of_it_gives_another_number():
    assert [check for check in check_log("extra-benchmark", LOG) if not check.holds] == []
    assert [run.metrics[0].normalised.value for run in ingest([LOG])] == [12.5e9, 12.25e9]


def test_a_line_without_a_number_is_no_result(tmp_path):
    log = tmp_path / "damaged.log"
    log.write_text(LOG.read_text().replace("12.5 ", "?? "))
    damaged, whole = ingest([log])
    assert damaged.status == "invalid" and "??" in damaged.reason
    assert whole.status == "ok"
