"""JUnit's XML, which CI systems show as tests: cells or comparisons, with what failed and what was skipped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from xml.etree import ElementTree as ET

from transect.domain.terminal import printable

# What XML 1.0 has no place for, escaped or not.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Ended(StrEnum):
    """How a test case ended."""

    PASSED = "passed"
    FAILED = "failure"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One test case. `group` is what readers gather cases by, JUnit's class; `kind` one word for why it did not pass."""

    group: str
    name: str
    ended: Ended
    said: str = ""
    kind: str = ""


def xml_text(text: str) -> str:
    """Return a text without characters that no XML may hold; a mark stands for each."""
    return _NO_XML.sub("\ufffd", text)


def junit(suites: Iterable[tuple[str, Sequence[Case]]]) -> bytes:
    """Write suites, each a name and its cases, as the readers of Jenkins, GitLab and GitHub's actions take them.

    Cases of one suite that are called alike get a number: readers keep one of each name.
    """
    root = ET.Element("testsuites", name="transect")
    totals = Counter[Ended]()
    for name, cases in suites:
        amounts = Counter(case.ended for case in cases)
        totals += amounts
        suite = ET.SubElement(root, "testsuite", {"name": _line(name), "time": "0"} | _counted(amounts))
        seen = Counter[tuple[str, str]]()
        for case in cases:
            group, called = _line(case.group), _line(case.name)
            seen[group, called] += 1
            number = seen[group, called]
            unique = called if number == 1 else f"{called} ({number})"
            # Some readers show a case without a time as one of no number.
            element = ET.SubElement(suite, "testcase", classname=group, name=unique, time="0")
            if case.ended is Ended.PASSED:
                if case.said:
                    ET.SubElement(element, "system-out").text = _line(case.said)
            else:
                why = ET.SubElement(element, case.ended.value, message=_line(case.said or case.kind))
                if case.ended is Ended.FAILED:
                    why.set("type", _line(case.kind))
                    why.text = _line(case.said)
    root.attrib |= _counted(totals)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _counted(amounts: Counter[Ended]) -> dict[str, str]:
    return {
        "tests": str(amounts.total()),
        "failures": str(amounts[Ended.FAILED]),
        "errors": "0",
        "skipped": str(amounts[Ended.SKIPPED]),
    }


def _line(text: str) -> str:
    return xml_text(printable(text))
