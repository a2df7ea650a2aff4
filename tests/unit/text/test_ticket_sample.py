"""The sample of real tickets that comes with the package."""

import fnmatch
import tomllib
from collections import Counter

from checkouts import ROOT
from transect.domain.paths import PACKAGE
from transect.text.formats import FORMATS
from transect.text.formats.sample import SAMPLE


def test_it_has_one_of_a_hundred_tickets_of_each_group():
    tickets = [*FORMATS.get("sample").tickets(None, {}, 0)]
    assert Counter(ticket.queue for ticket in tickets) == {
        "Hardware": 136,
        "HR Support": 109,
        "Access": 71,
        "Miscellaneous": 71,
        "Storage": 28,
        "Purchase": 25,
        "Internal Project": 21,
        "Administrative rights": 18,
    }
    assert len({ticket.id for ticket in tickets}) == 479
    for ticket in tickets:
        (message,) = ticket.messages
        assert message.text.strip() and message.role == "customer"
        assert (ticket.owner, message.author, message.time, ticket.truth) == ("", "", "", {})


def test_it_is_installed_with_the_package_and_tells_its_licence():
    facts = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = facts["tool"]["setuptools"]["package-data"]["transect"]
    for file in (SAMPLE, SAMPLE.with_name("README.md")):
        path = file.relative_to(PACKAGE).as_posix()
        assert any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns), path
    assert "CC0 1.0" in SAMPLE.with_name("README.md").read_text()
