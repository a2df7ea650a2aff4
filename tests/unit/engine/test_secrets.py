"""Passwords, tokens and keys: none gets from an environment, an address or a log into what people publish."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cell_jobs import Noisy, OneLine, make_job
from transect.cli.crate import write_crate
from transect.cli.main import app
from transect.domain.errors import BadInput
from transect.domain.record import Cause
from transect.domain.secrets import without_secrets
from transect.domain.strict_yaml import load_yaml
from transect.domain.terminal import complain
from transect.engine import build_environment, run_cell
from transect.engine.job import Result
from transect.engine.progress import Progress
from transect.engine.run_cell import run_job
from transect.measure.speed_variables import speed_variables

# Each is searched for in everything that is written: none is part of another, or of any word.
VARIABLES = {
    "TF_VAR_db_password": "planted-01-tf-var",
    "TF_TOKEN_app_terraform_io": "planted-02-tf-token",
    "CUDA_API_KEY": "planted-03-cuda",
    "NCCL_SECRET": "planted-04-nccl",
    "MKL_LICENSE_KEY": "planted-05-mkl",
    "HOROVOD_SECRET_KEY": "planted-06-horovod",
    "TORCH_HUB_TOKEN": "planted-07-hub",
    "XLA_SERVICE_PASSWORD": "planted-08-xla",
    "ORT_ACCESS_TOKEN": "planted-09-ort",
    "UCX_SECRET": "planted-10-ucx",
    "OMPI_MCA_sec_basic_key": "planted-11-mca",
    "PGPASSWORD": "planted-12-pg",
    "SLURM_JWT": "planted-13-jwt",
    "GITHUB_TOKEN": "planted-14-hub",
    "PIP_INDEX_URL": "https://me:planted-15-pip@pypi.example.org/simple",
    "HTTPS_PROXY": "http://me:planted-16-proxy@proxy.example.org:3128",
    "SSH_PRIVATE_KEY": "-----BEGIN KEY-----\nMIIEplanted-20-line\n-----END KEY-----\n",
}
REMOTE = "https://planted-17-git@git.example.org/me/model.git"
QUERY = "https://data.example.org/set.tar?X-Amz-Security-Token=planted-18-query&part=1"
HEADER = "Authorization: Bearer planted-19-header"
SPOKEN = f"fatal: unable to access '{REMOTE}'\n< {HEADER}\n{QUERY}\n"


def secrets_in(text: str) -> list[str]:
    return [f"planted-{n:02}" for n in range(1, 21) if f"planted-{n:02}" in text]


@pytest.fixture
def planted(monkeypatch):
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)


SPEED = (
    "OMP_NUM_THREADS CUDA_VISIBLE_DEVICES NCCL_SOCKET_IFNAME NCCL_ALGO TF_NUM_INTRAOP_THREADS XLA_FLAGS UCX_NET_DEVICES "
    "MKL_NUM_THREADS OMPI_MCA_btl_tcp_if_include OMPI_MCA_osc OMPI_MCA_op OMPI_MCA_mpi_yield_when_idle HOROVOD_GLOO_IFACE "
    "GLOO_SOCKET_IFNAME FI_TCP_IFACE LD_PRELOAD GLIBC_TUNABLES GOMAXPROCS JAVA_TOOL_OPTIONS _JAVA_OPTIONS NODE_OPTIONS "
    "UV_THREADPOOL_SIZE ATEN_CPU_CAPABILITY NUMBA_NUM_THREADS"
)
KEPT = dict.fromkeys(SPEED.split(), "1")


def test_variables_that_change_speed_are_a_closed_list() -> None:
    assert speed_variables(VARIABLES | KEPT) == KEPT
    made_up = {f"{name.split('_')[0]}_MADE_UP": "x" for name in (*VARIABLES, *KEPT)}
    assert speed_variables(made_up) == {}


HIDDEN = [
    ("git clone https://me:pw@host/x", "git clone https://***@host/x"),
    ("http://me:p@w@host/", "http://***@host/"),
    (REMOTE, "https://***@git.example.org/me/model.git"),
    ("GET /x?api_key=abc&n=1", "GET /x?api_key=***&n=1"),
    ("> authorization: Basic abc=", "> authorization: Basic ***"),
    ("psql planted-12-pg", "psql ***"),
    ("PGPASSWORD=hunter2 psql", "PGPASSWORD=*** psql"),
    (
        "run --api-key=abc -Djavax.net.ssl.keyStorePassword=pw -Xmx1g",
        "run --api-key=*** -Djavax.net.ssl.keyStorePassword=*** -Xmx1g",
    ),
    ("https://host/set?sig=ab%3D&part=1", "https://host/set?sig=***&part=1"),
    ("MIIEplanted-20-line", "***"),
]
SHOWN = (
    *("https://host/a@b", "me@example.org", "tcp://10.0.0.1:1234", "docker://ubuntu@sha256:0123", "ssh://me@host/x"),
    *("abfss://data@account.dfs.example.org/x", "http://h?mail=a@b", "?design=4", "OMP_NUM_THREADS=4"),
    *("num_tokens=4096, token: 7", "the key: value", "--max-tokens=4096", "authorization: denied by the host"),
)


@pytest.mark.parametrize(("given", "expected"), HIDDEN)
def test_a_secret_is_hidden_and_what_stands_around_it_stays(given, expected) -> None:
    assert without_secrets({"rows": [given]}, VARIABLES) == {"rows": [expected]}


@pytest.mark.parametrize("text", SHOWN)
def test_what_is_no_secret_stays(text) -> None:
    folder = {"PWD": "/home/me/models", "OLDPWD": "/home/me", "SSH_KEY_FILE": "/keys/mine"}
    assert without_secrets(text, {"TOKEN": "7", **folder}) == text
    assert without_secrets("in /home/me/models: /keys/mine", folder) == "in /home/me/models: /keys/mine"


def test_messages_hide_them(planted, capsys) -> None:
    complain(BadInput(SPOKEN, *(f"{name}={value}" for name, value in VARIABLES.items())))
    printed = capsys.readouterr().err
    assert "git.example.org" in printed and secrets_in(printed) == []


@pytest.mark.parametrize("value", [REMOTE, "docker://me:pw@registry.example.org/image"])
def test_a_study_or_a_system_with_a_login_in_an_address_is_refused(tmp_path, value) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(f"name: x\nimage: {value}\n")
    with pytest.raises(BadInput) as refused:
        load_yaml(file)
    assert "study.yaml:2" in str(refused.value) and value not in str(refused.value)
    for address in ("ssh://git@example.org/x", "ssh://me@example.org/x", "docker://ubuntu@sha256:0123"):
        file.write_text(f"image: {address}\n")
        assert load_yaml(file) == {"image": address}


class Speaks(OneLine):
    """A stage whose payload prints its environment, and fails with what a program said."""

    def collect(self, job, outcome):
        result = Result.failed(Cause.CRASH, job.log.read_text())
        result.details |= {"said": {"command": SPOKEN, "rows": [VARIABLES["PIP_INDEX_URL"]]}}
        result.libraries |= {"mpi": f"built from {REMOTE}"}
        return result


@pytest.mark.env
def test_records_report_crate_and_output_have_none(tmp_path, planted, monkeypatch, capsys) -> None:
    code = f"import os; print(dict(os.environ)); print({SPOKEN!r})"
    variables = {"NCCL_SECRET": VARIABLES["NCCL_SECRET"], "OMP_NUM_THREADS": "1"}
    monkeypatch.setattr(run_cell, "RUNNERS", {"bench": Speaks(code, **variables)})
    job = make_job(tmp_path, facts={"name": "x", "status": "ok", "wrapper_version": VARIABLES["PIP_INDEX_URL"]})
    paths = job.paths
    Progress(paths).note(run_job(job, 1, Noisy()))
    record = json.loads((job.folder / "record.json").read_text())
    assert record["provenance"]["variables"]["OMP_NUM_THREADS"] == "1"
    assert "git.example.org" in record["message"] and "git.example.org" in record["log_tail"]
    # It is what the payload printed: nobody edits it.
    assert len(secrets_in(job.log.read_text())) == 20
    study = tmp_path / "s.yaml"
    study.write_text("name: s\n")
    formats = [f"--format={name}" for name in ("html", "markdown", "json")]
    done = CliRunner().invoke(app, ["report", str(study), "--results", str(tmp_path), *formats])
    assert done.exit_code == 0, done.output
    write_crate(paths)
    pages = [path for path in paths.folder.rglob("*") if path.is_file() and path != job.log]
    assert {"report.html", "ro-crate-metadata.json", "record.json"} <= {path.name for path in pages}
    leaked = {path.name: secrets_in(path.read_bytes().decode("utf-8", "replace")) for path in pages}
    assert {name: found for name, found in leaked.items() if found} == {}
    printed = capsys.readouterr()
    assert secrets_in(printed.out + printed.err + done.output) == []


@pytest.mark.env
def test_what_a_failed_build_said_has_none(tmp_path: Path, planted, monkeypatch) -> None:
    source = tmp_path / "plugins" / "envs" / "speaks"
    source.mkdir(parents=True)
    (source / "requirements.txt").write_text("")
    (source / "build.sh").write_text(f"env\ncat <<'TEXT'\n{SPOKEN}TEXT\nexit 1\n")
    monkeypatch.setenv("TRANSECT_ENVS", str(tmp_path / "cache"))
    monkeypatch.setenv("TRANSECT_PLUGINS", str(tmp_path / "plugins"))
    stamp = tmp_path / "speaks.json"
    monkeypatch.setattr(sys, "argv", ["build", "--name", "speaks", "--out", str(stamp)])
    monkeypatch.setattr(build_environment, "end_on_signals", lambda: None)
    assert build_environment.main() == 0
    facts = json.loads(stamp.read_text())
    assert facts["status"] == "failed" and "git.example.org" in facts["message"]
    assert secrets_in(stamp.read_text()) == []
