"""What Slurm's accounting lets this user charge."""

from __future__ import annotations

from functools import cache

from transect.engine.locks import user_name
from transect.engine.scheduler import ask


@cache
def associations() -> dict[str, list[str]] | None:
    """Return the QOS of each account that this user may charge; None when sacctmgr does not answer."""
    text = ask("sacctmgr", "-nP", "show", "assoc", f"user={user_name()}", "format=account,qos")
    if text is None:
        return None
    found: dict[str, list[str]] = {}
    for account, _, qos in (line.partition("|") for line in text.splitlines()):
        found.setdefault(account, []).extend(qos.split(",") if qos else [])
    return found
