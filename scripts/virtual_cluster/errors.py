"""What can go wrong, with the exit code that tells the kinds apart."""

from __future__ import annotations


class ClusterError(Exception):
    """Something here failed: exit code 1."""

    exit_code = 1


class BadInput(ClusterError, ValueError):
    """An option cannot be used: exit code 2."""

    exit_code = 2


class NotPossible(ClusterError):
    """The machine lacks something, or the cluster is not up: exit code 3."""

    exit_code = 3
