"""Arrays that grow on disk, and lists that are read in pieces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.text.arrays import Lists, growing


@pytest.mark.parametrize("row", [(), (3,)])
@pytest.mark.parametrize("pieces", [[], [0], [1], [2, 0, 5], [40000, 1]])
def test_what_grew_is_an_ordinary_file(tmp_path, row, pieces):
    expected = np.arange(sum(pieces) * int(np.prod(row)), dtype=np.int32).reshape(-1, *row)
    with growing(tmp_path / "a.npy", "<i4", row) as array:
        for piece in np.split(expected, np.cumsum(pieces)[:-1] if pieces else []):
            array.append(piece)
    found = np.load(tmp_path / "a.npy")
    assert found.dtype == np.int32 and found.shape == expected.shape
    assert (found == expected).all()
    assert (np.load(tmp_path / "a.npy", mmap_mode="r") == expected).all()


def stored(folder, lists):
    with growing(folder / "values.npy", "<i4") as values, growing(folder / "offsets.npy", "<i8") as offsets:
        offsets.append(np.zeros(1, np.int64))
        for numbers in lists:
            values.append(np.array(numbers, np.int32))
            offsets.append(np.array([values.length]))
    return Lists(folder / "values.npy", folder / "offsets.npy")


@given(
    lists=st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=12),
    values=st.integers(1, 30),
    most=st.integers(1, 5),
)
def test_pieces_of_any_size_are_the_lists_in_order(tmp_path_factory, lists, values, most):
    folder = tmp_path_factory.mktemp("lists")
    found = []
    for piece in stored(folder, lists).pieces(values, most):
        lists_of_piece = [part.tolist() for part in np.split(piece.values, piece.starts[1:-1])]
        assert piece.first == len(found) and len(lists_of_piece) == len(piece.lengths) <= most
        assert len(piece.values) <= values or len(lists_of_piece) == 1
        found += lists_of_piece
    assert found == lists


def test_a_file_that_lost_its_end_is_said(tmp_path):
    lists = stored(tmp_path, [[1, 2], [3]])
    whole = (tmp_path / "values.npy").read_bytes()
    (tmp_path / "values.npy").write_bytes(whole[:-4])
    with pytest.raises(EOFError, match=r"values\.npy"):
        list(lists.pieces())
