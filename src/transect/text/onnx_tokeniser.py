"""The tokeniser as a graph of ONNX's standard operators on numbers, from UTF-8 on.

It gives the numbers that `transect.text.tokeniser` gives for the same bytes, decoded with
`errors="replace"`: what is no UTF-8 parts words. All work is on one row, the bytes of all texts
behind one another with a 0 after each, so that memory is linear in them; there is no loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from transect.onnx_models.graph_writer import GraphWriter
from transect.text.lexicon import LEFT_OUT, Lexicon
from transect.text.tokeniser import LETTERS_END, MAX_LETTERS, UNKNOWN, letter_table

if TYPE_CHECKING:
    from onnx import GraphProto

# Since then ScatterElements adds.
MIN_OPSET = 16

# Bytes from here on continue a character, begin one of two bytes, begin one of three or more.
_CONTINUES, _TWO, _THREE = 0x80, 0xC0, 0xE0
# The least character that two and that three bytes may stand for.
_MIN_OF_TWO, _MIN_OF_THREE = 0x80, 0x800
# What a byte that does not continue adds to a character: enough to make it negative.
_BROKEN = -(2**20)
# In place of the sum of a word that is too long; no word of a lexicon has it.
_TOO_LONG = 2**63 - 1
# What stands behind the last text: as many as a letter has bytes at most.
_BEHIND = 3


def add_tokeniser(graph: GraphProto, text: str, lexicon: Lexicon, length: int, *, narrow: bool) -> str:
    """Add the nodes; return the name of the word numbers: (batch, `length`) int64.

    `text` names a value (batch, bytes) uint8: UTF-8, filled up with zeros. With `narrow` there are only as many columns
    as the longest text needs, one at least. The graph's model is of opset MIN_OPSET or later.
    """
    return _Tokeniser(graph, lexicon).numbers(text, length, narrow)


class _Tokeniser:
    """Writes the nodes, a method for each step; arguments and results are names of values."""

    def __init__(self, graph: GraphProto, lexicon: Lexicon) -> None:
        self._writer, self._lexicon = GraphWriter(graph, "tokeniser"), lexicon
        self._node, self._cast = self._writer.node, self._writer.cast

    def numbers(self, text: str, length: int, narrow: bool) -> str:
        """Return the numbers of each text's first words that are not left out."""
        node = self._node
        shape = node("Shape", text)
        texts, width = (node("Gather", shape, self._int64([axis])) for axis in (0, 1))
        one_int64 = self._int64([1])
        apart = node("Concat", text, self._zeros("uint8", texts, one_int64), axis=1)
        row = node("Concat", self._flat(apart), self._zeros("uint8", self._int64([_BEHIND])), axis=0)
        letters, begins = self._letters(self._cast(row, "int32"))
        places = self._flat(node("NonZero", begins))
        found = self._look_up(self._sums(letters, begins, places))
        owner = node("Div", places, node("Add", width, one_int64))
        return self._cut(found, owner, texts, length, narrow)

    def _letters(self, byte: str) -> tuple[str, str]:
        """Return the letter that begins with each byte, or 0, and where words begin."""
        node = self._node
        alone, of_two = (node("Less", byte, self._int32(end)) for end in (_CONTINUES, _THREE))
        code = node("Where", alone, byte, self._longer_codes(byte, of_two))
        table = self._writer.constant(np.append(letter_table(), 0), "int64")
        letters = node("Gather", table, node("Min", code, self._int32(LETTERS_END)))
        is_letter = node("Greater", letters, self._int64(0))
        # A word goes on where a letter ends just before.
        sizes = (alone, node("Xor", alone, of_two), node("Not", of_two))
        ended = [self._moved(node("And", is_letter, of_size), size) for size, of_size in enumerate(sizes, 1)]
        goes_on = node("Or", node("Or", ended[0], ended[1]), ended[2])
        return letters, node("And", is_letter, node("Not", goes_on))

    def _longer_codes(self, byte: str, of_two: str) -> str:
        """Return the character that begins with each byte, of two bytes or three, 0 for none."""
        node = self._node
        added = node("Sub", byte, self._int32(_CONTINUES))
        continues = node(
            "And", node("GreaterOrEqual", byte, self._int32(_CONTINUES)), node("Less", byte, self._int32(_TWO))
        )
        second = self._moved(node("Where", continues, added, self._int32(_BROKEN)), -1)
        third = self._moved(second, -1)
        two = node("Add", self._scaled(byte, _TWO, 64), second)
        three = node("Add", node("Mul", second, self._int32(64)), third)
        three = node("Add", self._scaled(byte, _THREE, 4096), three)
        code = node("Where", of_two, two, three)
        least = node("Where", of_two, self._int32(_MIN_OF_TWO), self._int32(_MIN_OF_THREE))
        return node("Where", node("GreaterOrEqual", code, least), code, self._int32(0))

    def _sums(self, letters: str, begins: str, places: str) -> str:
        """Return each word's sum of letter times weight; `places` are where words begin."""
        node, zero = self._node, self._int64(0)
        ordinal = self._running(self._cast(node("Greater", letters, zero), "int32"))
        word = self._running(self._cast(begins, "int32"))
        first = node("Gather", ordinal, places)
        # Before the first word there is nothing to count from.
        firsts = node("Concat", self._int32([0]), first, axis=0)
        place = node("Sub", ordinal, node("Gather", firsts, word))
        weight = node(
            "Gather",
            self._writer.constant(self._lexicon.weights, "int64"),
            node("Min", place, self._int32(MAX_LETTERS)),
        )
        sums = node(
            "ScatterElements",
            self._zeros("int64", node("Shape", firsts)),
            word,
            node("Mul", letters, weight),
            axis=0,
            reduction="add",
        )
        behind = node("Add", self._part(ordinal, -1), self._int32([1]))
        bounds = node("Concat", first, behind, axis=0)
        size = node("Sub", self._part(bounds, 1), first)
        fits = node("LessOrEqual", size, self._int32(MAX_LETTERS))
        return node("Where", fits, self._part(sums, 1), self._int64(_TOO_LONG))

    def _look_up(self, sums: str) -> str:
        """Return each word's number."""
        node, lexicon = self._node, self._lexicon
        in_order = self._writer.constant(lexicon.sums, "int64")
        lists = self._int64(len(lexicon.begins))
        at = node("Gather", self._writer.constant(lexicon.begins, "int64"), node("Mod", sums, lists))
        for _ in range(lexicon.longest - 1):
            differs = node("Not", node("Equal", node("Gather", in_order, at), sums))
            at = node("Add", at, self._cast(differs, "int64"))
        found = node("Equal", node("Gather", in_order, at), sums)
        number = node("Gather", self._writer.constant(lexicon.numbers, "int64"), at)
        return node("Where", found, number, self._int64(UNKNOWN))

    def _cut(self, number: str, text: str, texts: str, length: int, narrow: bool) -> str:
        """Return the first numbers of each text; `text` says to which each belongs."""
        node = self._node
        stays = self._cast(node("Not", node("Equal", number, self._int64(LEFT_OUT))), "int64")
        before = self._running(stays, exclusive=1)
        each = self._zeros("int64", texts)
        each = node("ScatterElements", each, text, stays, axis=0, reduction="add")
        rank = node("Sub", before, node("Gather", self._running(each, exclusive=1), text))
        fits = node("Less", rank, self._int64(length))
        taken = node("And", fits, self._cast(stays, "bool"))
        width = self._int64([length])
        if narrow:
            longest = node("ReduceMax", node("Concat", each, self._int64([1]), axis=0), keepdims=1)
            width = node("Min", width, longest)
        slot = node("Add", node("Mul", text, width), rank)
        slot, number = (node("Compress", values, taken, axis=0) for values in (slot, number))
        rows = self._zeros("int64", node("Mul", texts, width))
        rows = node("ScatterElements", rows, slot, number, axis=0)
        return node("Reshape", rows, node("Concat", texts, width, axis=0))

    def _int32(self, value: Any) -> str:
        return self._writer.constant(value, "int32")

    def _int64(self, value: Any) -> str:
        return self._writer.constant(value, "int64")

    def _zeros(self, dtype: str, *sizes: str) -> str:
        """Return zeros; `sizes` are values of one element each, or the whole shape."""
        shape = self._node("Concat", *sizes, axis=0) if len(sizes) > 1 else sizes[0]
        return self._node("Expand", self._writer.constant(0, dtype), shape)

    def _flat(self, value: str) -> str:
        return self._node("Reshape", value, self._int64([-1]))

    def _part(self, value: str, begin: int) -> str:
        """Return what stands from `begin` on."""
        return self._node("Slice", value, self._int64([begin]), self._int64([2**31]))

    def _moved(self, value: str, steps: int) -> str:
        """Return every element `steps` further on, with zeros where none comes from."""
        return self._node("Pad", value, self._int64([steps, -steps]))

    def _scaled(self, byte: str, first: int, factor: int) -> str:
        return self._node("Mul", self._node("Sub", byte, self._int32(first)), self._int32(factor))

    def _running(self, value: str, exclusive: int = 0) -> str:
        return self._node("CumSum", value, self._int64(0), exclusive=exclusive)
