"""Which languages count as those of a corpus."""

import pytest

from transect.text.token_files import common


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"en": 990, "de": 10}, ["de", "en"]),
        ({"en": 991, "de": 9}, ["en"]),
        # Texts whose language was not told count among all, and as no language.
        ({"": 900, "de": 91, "en": 9}, ["de"]),
        ({"": 5}, []),
        ({}, []),
    ],
)
def test_a_language_of_at_least_one_text_in_a_hundred_is_common(counts, expected):
    assert common(counts) == expected
