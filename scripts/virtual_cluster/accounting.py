"""slurmdbd and its MariaDB. All functions run inside the world, on the login node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from . import daemons
from .errors import ClusterError
from .processes import DAEMON_ENVIRONMENT, wait_until
from .slurm_conf import CLUSTER_NAME
from .state import Folder

ACCOUNT = "transect"
TEMPLATE = ".database-template"
TIMEOUT_S = 600


def start(folder: Folder) -> None:
    """Start the database and slurmdbd, and make the cluster, the account and the user known."""
    _start_database(folder)
    socket = str(folder.run / "mysql.sock")
    daemons.daemon(["slurmdbd"], folder.log / "slurmdbd.out", MYSQL_UNIX_PORT=socket)
    if not wait_until(lambda: _succeeds("sacctmgr", "-n", "list", "cluster"), TIMEOUT_S):
        said = daemons.last_line(folder.log / "slurmdbd.log")
        raise ClusterError(f"slurmdbd does not answer after {TIMEOUT_S} s: {said}")
    for what in (
        ("cluster", CLUSTER_NAME),
        ("account", ACCOUNT, f"Cluster={CLUSTER_NAME}"),
        ("user", "root", f"Account={ACCOUNT}", f"DefaultAccount={ACCOUNT}"),
    ):
        done = _run("sacctmgr", "-i", "add", *what)
        if done.returncode != 0 and "already exists" not in done.stdout + done.stderr:
            raise ClusterError(f"sacctmgr add {' '.join(what)}: {(done.stdout + done.stderr)!r}")


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, env=DAEMON_ENVIRONMENT, capture_output=True, text=True, timeout=300)


def _succeeds(*argv: str) -> bool:
    return _run(*argv).returncode == 0


def _start_database(folder: Folder) -> None:
    data, socket = folder.path / "db", folder.run / "mysql.sock"
    _install_database(folder, data)
    argv = [
        "mariadbd",
        "--no-defaults",
        "--user=root",
        f"--datadir={data}",
        f"--socket={socket}",
        f"--pid-file={folder.run}/mariadbd.pid",
        "--skip-networking",
        "--skip-grant-tables",  # the socket's folder is root's; a password would guard nothing
        # What is lost with a crash was to be thrown away: no flushing, small files.
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-flush-method=nosync",
        "--innodb-log-file-size=8M",
        "--innodb-buffer-pool-size=64M",
        "--innodb-temp-data-file-path=ibtmp1:1M:autoextend",
        "--innodb-lock-wait-timeout=900",  # slurmdbd complains of less
    ]
    with (folder.log / "mariadbd.log").open("a") as log:
        process = subprocess.Popen(
            argv, env=DAEMON_ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    ask = ("mariadb", "--no-defaults", "-S", str(socket), "-e", "select 1")
    answered = wait_until(lambda: process.poll() is not None or _succeeds(*ask), TIMEOUT_S)
    if not answered or process.poll() is not None:
        said = daemons.last_line(folder.log / "mariadbd.log")
        raise ClusterError(f"mariadbd did not start: {said}")


def _install_database(folder: Folder, data: Path) -> None:
    """Copy the empty database, which takes seconds to make, from the last time."""
    template = folder.path.parent / TEMPLATE
    if template.is_dir():
        shutil.copytree(template, data)
        return
    done = _run_install(folder, data)
    if done != 0:
        said = daemons.last_line(folder.log / "mariadb-install-db.log")
        raise ClusterError(f"mariadb-install-db ended with {done}: {said}")
    unfinished = template.with_name(f"{TEMPLATE}.{folder.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(data, unfinished)
    unfinished.rename(template)


def _run_install(folder: Folder, data: Path) -> int:
    argv = [
        "mariadb-install-db",
        "--no-defaults",
        "--user=root",
        f"--datadir={data}",
        "--skip-test-db",
        "--auth-root-authentication-method=normal",
        "--innodb-log-file-size=8M",  # mariadbd refuses logs of another size
    ]
    with (folder.log / "mariadb-install-db.log").open("w") as log:
        return subprocess.run(argv, env=DAEMON_ENVIRONMENT, stdout=log, stderr=log).returncode
