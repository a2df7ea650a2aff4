"""Locks of builders, also on a file system that knows no `flock`, such as many Lustre mounts."""

from __future__ import annotations

import errno
import fcntl
import json
import os

import pytest

from transect.execution import build_environment
from transect.execution.file_lock import FileLock
from transect.execution.locks import process_start
from transect.planning.environments import lock_hash

HERE = os.uname().nodename


@pytest.fixture(params=[errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK])
def no_flock(request, monkeypatch):
    def refuses(*_: object) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", refuses)


@pytest.fixture
def lock(tmp_path):
    """A lock that nobody holds; with what another process is called that holds it."""
    with FileLock(tmp_path / "x.lock") as made:
        yield made


def holds(lock: FileLock, number: int, **facts: object) -> None:
    told = {"user": "u", "pid": 1, "host": HERE, "created": 1.0} | facts
    lock.path.with_name(f"{lock.path.name}.{number}").write_text(json.dumps(told))


def test_one_at_a_time_and_again_when_it_was_given_back(no_flock, lock, tmp_path):
    with FileLock(lock.path) as other:
        assert other.take()
        assert not lock.take()
        assert lock.holder()["pid"] == os.getpid()
    assert lock.holder() == {} and lock.take()
    # One file says who holds it, whatever came before.
    assert len(list(tmp_path.glob("x.lock.*"))) == 1


def test_with_flock_there_is_no_further_file(lock, tmp_path):
    with FileLock(lock.path) as other:
        assert other.take() and not lock.take()
    assert lock.take()
    assert [path.name for path in tmp_path.iterdir()] == ["x.lock"]


@pytest.mark.parametrize(
    ("facts", "free"),
    [
        ({"pid": os.getpid(), "created": process_start()}, False),
        # Its number was given to another process since.
        ({"pid": os.getpid(), "created": process_start() - 1000}, True),
        # No process has such a number.
        ({"pid": 1 << 30}, True),
        # Nobody can tell from here.
        ({"host": "elsewhere"}, False),
    ],
)
@pytest.mark.parametrize("no_flock", [errno.ENOSYS], indirect=True)
def test_a_holder_that_has_died_holds_nothing(no_flock, lock, facts, free):
    holds(lock, 7, **facts)
    assert lock.take() is free
    assert lock.path.with_name("x.lock.8").exists() is free


@pytest.mark.parametrize("no_flock", [errno.ENOSYS], indirect=True)
def test_who_looked_long_ago_takes_nothing_from_another(no_flock, lock, monkeypatch):
    """It found number 1 dead, and meanwhile 2 was taken and given back, and 3 is held."""
    holds(lock, 1, pid=1 << 30)
    link = os.link

    def late(source, target):
        monkeypatch.setattr(os, "link", link)
        with FileLock(lock.path) as second:
            assert second.take()
        assert third.take()
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with FileLock(lock.path) as third:
        assert not lock.take()
        assert lock.holder()["file"].endswith("x.lock.3")
        assert not lock.take()
    assert lock.take()


def test_an_environment_is_built_without_flock(no_flock, tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSECT_ENVS", str(tmp_path))
    made = []
    monkeypatch.setattr(
        build_environment, "_make", lambda name, folder, log: made.append(folder) or {}
    )
    facts = build_environment.build("base", tmp_path / "log")
    assert (facts["status"], made) == ("ok", [tmp_path / f"base-{lock_hash('base')}"])


def test_another_fault_of_the_lock_is_told(lock, monkeypatch):
    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(fcntl, "flock", fails)
    with pytest.raises(OSError, match="input/output"):
        lock.take()
