"""Functions that run beside each other in threads: tests on a cluster mostly wait for Slurm."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

from clustered import ClusterCheckout
from clusters import GIVEN_UP

Maker = Callable[[], ClusterCheckout]
# What a test needs to have happened: it is given a maker of checkouts, and what it returns or
# raises is the test's.
Body = Callable[[Maker], Any]


def _test_of(body: Body, mark: str) -> Callable[..., None]:
    def test(side_by_side: SideBySide) -> None:
        side_by_side.result(body)

    test.__name__, test.__doc__ = body.__name__, body.__doc__
    # Called with a function alone, a mark would mark that one.
    return getattr(pytest.mark, mark).with_args(body)(test)  # type: ignore[no-any-return]


def beside(body: Body) -> Callable[..., None]:
    """Make a test of a body that is no other run's business: it begins with all others."""
    return _test_of(body, "beside")


def alone(body: Body) -> Callable[..., None]:
    """Make a test of a body that breaks nodes: only its own kind runs beside it."""
    return _test_of(body, "alone")


class SideBySide:
    """Begins the bodies of all selected tests when the first of their kind is asked for."""

    def __init__(self, items: list[pytest.Item], make: Maker) -> None:
        self._make = make
        self._bodies = {
            kind: list(dict.fromkeys(m.args[0] for i in items for m in i.iter_markers(kind)))
            for kind in ("beside", "alone")
        }
        self._futures: dict[Body, Future[Any]] = {}
        self._made: list[ClusterCheckout] = []
        self._pool = ThreadPoolExecutor(sum(map(len, self._bodies.values())) or 1)

    def result(self, body: Body) -> Any:
        """Return what a body returned, or raise what it raised, as soon as it has ended."""
        (kind,) = (kind for kind, bodies in self._bodies.items() if body in bodies)
        if body not in self._futures:
            self.begin(kind)
        return self._futures[body].result()

    def begin(self, kind: str) -> None:
        """Begin all of a kind, when all of the other kind that has begun has ended."""
        wait(self._futures.values())
        self._futures |= {body: self._pool.submit(self._run, body) for body in self._bodies[kind]}

    def end(self) -> None:
        """Begin nothing more, and end what still runs: all results have been asked for, or no more are."""
        GIVEN_UP.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        for checkout in self._made:
            checkout.end()
        self._pool.shutdown()

    def _run(self, body: Body) -> Any:
        made: list[ClusterCheckout] = []

        def make() -> ClusterCheckout:
            made.append(self._make())
            self._made.append(made[-1])
            return made[-1]

        try:
            return body(make)
        except BaseException:
            for checkout in made:
                with contextlib.suppress(AssertionError):
                    checkout.end()
            raise
