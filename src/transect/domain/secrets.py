"""Passwords, tokens and keys are taken out of what people publish: records, reports, messages.

What a payload prints itself stands in its own log, as it printed it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["login_in", "without_secrets"]

_HIDDEN = "***"
# What stands before the host of an address: https://user:password@host, https://token@host.
_LOGIN = re.compile(r"(?<=://)[^\s/'\"<>]+@")
# The first group is kept.
_AFTER = re.compile(
    r"(?i)([?&][\w-]*(?:token|secret|password|signature|api_?key)[\w-]*="
    r"|\bauthorization:\s*(?:basic|bearer|token)\s+)[^\s&'\"<>]+"
)
# Names of variables that hold a secret. `PWD` is the working folder.
_NAME = re.compile(
    r"(?i)(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|JWT|(?:^|_)TOKEN|_PWD|_PASS|(?:^|_)KEY)(?:_|$)"
)
_NO_SECRET = re.compile(r"(?i)_(?:FILE|PATH|DIR|SOCK)$|^OLDPWD$")
# What is shorter may be a word of any text.
_SHORTEST = 8


def login_in(text: str) -> bool:
    """Whether an address with a password or a token stands in a text; `ssh://git@host` has none."""
    return any(match[0] != "git@" for match in _LOGIN.finditer(text))


def _values(environment: Mapping[str, str]) -> list[str]:
    """Return the secrets that an environment holds, the longest first: one may be part of another."""
    found = {
        value
        for name, value in environment.items()
        if len(value) >= _SHORTEST and _NAME.search(name) and not _NO_SECRET.search(name)
    }
    return sorted(found, key=len, reverse=True)


def without_secrets(value: Any, environment: Mapping[str, str] | None = None) -> Any:
    """Return a text, or what JSON can hold, with `***` for each secret in its texts.

    A secret is a login or a key in an address, an `Authorization` header, and the value of a variable of
    `environment`, by default this process's, whose name says so.

    >>> without_secrets("cannot reach https://me:hunter2@example.org/simple", {})
    'cannot reach https://***@example.org/simple'
    """
    values = _values(os.environ if environment is None else environment)

    def clean(one: Any) -> Any:
        if isinstance(one, str):
            for secret in values:
                one = one.replace(secret, _HIDDEN)
            return _AFTER.sub(rf"\1{_HIDDEN}", _LOGIN.sub(f"{_HIDDEN}@", one))
        if isinstance(one, dict):
            return {clean(key): clean(inner) for key, inner in one.items()}
        return [clean(inner) for inner in one] if isinstance(one, list | tuple) else one

    return clean(value)
