"""Passwords, tokens and keys are taken out of what people publish: records, reports, messages.

What a payload prints itself is in its log, unchanged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

_HIDDEN = "***"
# What stands before the host of an address: https://user:password@host, https://token@host. A digest as in
# docker://ubuntu@sha256:… is no host.
_LOGIN = re.compile(r"(?P<scheme>\b[a-z][\w+.-]{0,30})://(?P<login>[^\s/?#'\"<>]+)@(?!sha\d+:)", re.I)
# Where a name alone is that of a user or a container; `git` is everybody's.
_BY_NAME = re.compile(r"(?i)(?:.*\+)?(?:ssh|sftp|rsync|hdfs|abfss?|wasbs?)")
# The first group is kept. `max_tokens` is a count.
_AFTER = re.compile(
    r"(?i)((?:[?&]|(?:^|\s)--?)"
    r"(?:[\w.-]*(?:token(?!s)|secret|passw(?:or)?d|signature|credential|api[_-]?key|access[_-]?key)[\w-]*|sig)="
    r"|\b(?:authorization:\s*(?:basic|bearer|token)|x-api-key:|x-auth-token:|private-token:)\s+)[^\s&'\"<>]+"
)
# Names of variables that hold a secret. `PWD` is the working folder, and KEY=VALUE is how messages say what is expected.
_NAME = re.compile(r"(?i)(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|JWT|(?:^|_)TOKEN|_PWD|_PASS|API_?KEY|_KEY)(?:_|$)")
_NO_SECRET = re.compile(r"(?i)_(?:FILE|PATH|DIR|SOCK)$|^OLDPWD$")
# A variable as a shell writes it: the value is hidden however short it is.
_SET = re.compile(r"\b([A-Z][A-Z0-9_]*)=[^\s'\"<>]+")
# What is shorter may be a word of any text.
MIN_SECRET = 8


def _holds_login(match: re.Match[str]) -> bool:
    login = match["login"]
    return login != "git" and (":" in login or not _BY_NAME.fullmatch(match["scheme"]))


def login_in(text: str) -> bool:
    """Whether an address with a password or a token stands in a text; `ssh://git@host` has none."""
    return any(map(_holds_login, _LOGIN.finditer(text)))


def _values(environment: Mapping[str, str]) -> list[str]:
    """Return the secrets that an environment holds, the longest first: one may be part of another."""
    found = {
        part
        for name, value in environment.items()
        if _is_secret(name)
        # A key of many lines is printed line by line.
        for part in (value, *value.splitlines())
        if len(part) >= MIN_SECRET
    }
    return sorted(found, key=len, reverse=True)


def _is_secret(name: str) -> bool:
    return bool(_NAME.search(name)) and not _NO_SECRET.search(name)


def _address(match: re.Match[str]) -> str:
    return f"{match['scheme']}://{_HIDDEN}@" if _holds_login(match) else match[0]


def _setting(match: re.Match[str]) -> str:
    return f"{match[1]}={_HIDDEN}" if _is_secret(match[1]) else match[0]


def without_secrets(value: Any, environment: Mapping[str, str] | None = None) -> Any:
    """Return a text, or what JSON can hold, with `***` for each secret in its texts.

    A secret is a login or a key in an address, an `Authorization` header, and the value of a variable of
    `environment`, by default this process's, whose name says so.

    >>> without_secrets("cannot reach https://me:hunter2@example.org/simple", {})
    'cannot reach https://***@example.org/simple'
    """
    values = _values(os.environ if environment is None else environment)

    def clean(part: Any) -> Any:
        if isinstance(part, str):
            for secret in values:
                part = part.replace(secret, _HIDDEN)
            return _AFTER.sub(rf"\1{_HIDDEN}", _SET.sub(_setting, _LOGIN.sub(_address, part)))
        if isinstance(part, dict):
            return {clean(key): clean(inner) for key, inner in part.items()}
        return [clean(inner) for inner in part] if isinstance(part, list | tuple) else part

    return clean(value)
