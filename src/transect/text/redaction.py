"""What identifies people in texts: found, and replaced by words that do not."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from transect.text.people import Span

# Each one word of letters, so that a tokeniser keeps it whole.
EMAIL, PHONE, IP = "emailaddress", "phonenumber", "ipaddress"

_LOCAL = r"\w.!#$%&'*+/=?^`{|}~-"
# A run of such characters is looked at from its start only: the time grows with the text's length.
_EMAIL = re.compile(
    rf"(?<![{_LOCAL}])[{_LOCAL}]+(?:@|\s?[(\[]\s?(?:at|AT|ät)\s?[)\]]\s?)\w[\w-]*(?:(?:\.|\s?[(\[](?:dot|punkt)[)\]]\s?)\w[\w-]*)*"
)
_AT = re.compile(r"[(\[]\s?(?:at|AT|ät)\s?[)\]]")
_IPV4 = re.compile(r"(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?!\d|\.\d)")
# One of IPv4 within it is taken whole, or the rest would stay.
_IPV6 = re.compile(r"(?<![^\W_])(?<!:)[0-9A-Fa-f:]{2,39}(?:\d\.\d{1,3}\.\d{1,3}\.\d{1,3})?(?![^\W_]|:|\.\d{1,3}\.\d)")
_DIGITS = re.compile(r"(?<![^\W_])(?<!\+)\+?\(?\d[\d ()./\u2010-\u2015\u2212-]*")
_DIGIT = re.compile(r"\d")
_DATE = re.compile(r"\b(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./](?:\d{4}|\d\d))\b")
MIN_PHONE_DIGITS = 7
# Without one of them in it a text in ASCII has nothing that is looked for; most have none.
_MARKS = b"@([:0123456789"


@dataclass(slots=True)
class Counts:
    """How often each was found."""

    names: int = 0
    emails: int = 0
    phones: int = 0
    ips: int = 0


def redact(text: str, counts: Counts) -> str:
    """Return `text` with the words `EMAIL`, `PHONE` and `IP` for addresses and numbers.

    A telephone number is whatever has 7 digits or more and is no date.
    """
    if text.isascii():
        raw = text.encode()
        if len(raw.translate(None, _MARKS)) == len(raw):
            return text
    if "@" in text or _AT.search(text):
        text, found = _EMAIL.subn(EMAIL, text)
        counts.emails += found
    if _DIGIT.search(text) or "::" in text:
        text = _numbers(text, counts)
    return text


def _numbers(text: str, counts: Counts) -> str:
    def ipv6(found: re.Match[str]) -> str:
        if found.group().count(":") < 2 or not _is_ipv6(found.group()):
            return found.group()
        counts.ips += 1
        return IP

    def phone(found: re.Match[str]) -> str:
        whole = found.group()
        number = whole.rstrip(" (./-\u2010\u2011\u2012\u2013\u2014\u2015\u2212")
        if sum(map(str.isdigit, _DATE.sub("", number))) < MIN_PHONE_DIGITS:
            return whole
        counts.phones += 1
        return PHONE + whole[len(number) :]

    if ":" in text:
        text = _IPV6.sub(ipv6, text)
    if "." in text:
        text, ips = _IPV4.subn(IP, text)
        counts.ips += ips
    return _DIGITS.sub(phone, text)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return text != "::"


def replace_spans(text: str, spans: list[Span]) -> tuple[str, list[Span]]:
    """Put the pseudonyms in the places of names; return the text, and where they are in it."""
    pieces: list[str] = []
    replaced: list[Span] = []
    end = length = 0
    for start, stop, pseudonym in spans:
        before = text[end:start]
        length += len(before)
        replaced.append((length, length + len(pseudonym), pseudonym))
        pieces += [before, pseudonym]
        length += len(pseudonym)
        end = stop
    return "".join([*pieces, text[end:]]), replaced
