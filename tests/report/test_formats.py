"""The report in other formats than the page: the same content, and foreign text that does nothing."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from copy import copy
from dataclasses import replace
from typing import Any

import pytest
from make_records import HOSTILE
from markdown_it import MarkdownIt

from transect.report.engine.blocks import Charts, Table
from transect.report.engine.formats import REPORT_FORMATS, Contents
from transect.report.engine.formats._markdown_text import fenced, inline, row
from transect.report.engine.formats.latex_tables import latex
from transect.report.engine.report import Made

# What any log or name may hold: each character of the first planes, and what has a meaning somewhere.
EVERY = "".join(map(chr, [*range(1, 0x250), *range(0x2000, 0x2070), 0x4E2D, 0x1F600, 0xFEFF]))
NASTY = [
    HOSTILE,
    EVERY,
    "`a` ``b` ``` c",
    "| --- |",
    "# no heading",
    "1. no list",
    "- no list",
    "a\\",
    "\\\\",
    "$x^2$",
    "https://evil.example/x www.evil.example a@b.example @somebody",
    "![x](javascript:alert(1))",
    "<!-- x",
    "&lt;b&gt;",
    r"\input{/etc/passwd}\write18{id}^^5c",
    "%",
    "[4cm] x",
    "*",
    "}{",
    "a & b \\\\ c",
    ":warning:",
    "\x1b[31m",
]


def hostile(made: Made) -> Made:
    """The same under a hostile title, with a hostile question."""
    context = copy(made.context)
    context.title = f"Synthetic {HOSTILE}"
    asked = [replace(answer, question=f"Which {HOSTILE}?") for answer in made.front.answers]
    assert asked
    return replace(made, context=context, front=replace(made.front, answers=tuple(asked)))


@pytest.fixture(scope="module")
def made(synthetic: Made) -> Made:
    return hostile(synthetic)


@pytest.fixture(scope="module")
def contents(made: Made) -> dict[str, Contents]:
    return {name: REPORT_FORMATS.get(name).contents(made) for name in REPORT_FORMATS}


def tables_of(made: Made) -> list[Table]:
    """Every table that stands in the report by itself or behind a chart."""
    found = []
    for section in made.every:
        for block in section.body.blocks:
            if isinstance(block, Table):
                found.append(block)
            elif isinstance(block, Charts):
                found += [chart.table for chart in block.items]
    return found


def test_every_format_writes_something_and_stays_in_its_place(contents: dict[str, Contents]) -> None:
    for name, written in contents.items():
        place = REPORT_FORMATS.get(name).place
        assert written.files or written.left_out, name
        assert place.endswith("/") or list(written.files) == [""]
        for path in written.files:
            assert re.fullmatch(r"[\w.~+=,/-]*", path) and ".." not in path, path


def test_equal_records_give_equal_bytes(synthetic_again: Made, contents: dict[str, Contents]) -> None:
    for name in ("markdown", "json", "latex-tables", "figures", "paper"):
        files = REPORT_FORMATS.get(name).contents(hostile(synthetic_again)).files
        assert dict(files) == dict(contents[name].files), name


# --- Markdown


def tokens(text: str) -> list[Any]:
    """Everything that GitHub's Markdown would find, inside lines too; raw HTML is let through."""
    reader = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    return [part for token in reader.parse(text) for part in (token, *(token.children or ()))]


def test_markdown_holds_no_tag_link_or_picture_of_anybody(contents: dict[str, Contents]) -> None:
    text = contents["markdown"].files[""].decode()
    found = tokens(text)
    raw = {token.content for token in found if token.type in ("html_inline", "html_block")}
    assert raw <= {"<!-- -->"}
    assert not [token for token in found if token.type == "link_open"]
    pictures = [token.attrs["src"] for token in found if token.type == "image"]
    assert pictures and all(re.fullmatch(r"figures/[a-z0-9/-]+\.svg", source) for source in pictures)
    assert {source.removeprefix("figures/") for source in pictures} <= set(contents["figures"].files)


def test_markdown_has_every_row_of_every_table(made: Made, contents: dict[str, Contents]) -> None:
    found = tokens(contents["markdown"].files[""].decode())
    rows = sum(token.type == "tr_open" for token in found)
    # Failures and what stands before the sections bring tables of their own.
    assert rows >= sum(1 + len(table.rows) for table in tables_of(made) if table.columns)


@pytest.mark.parametrize("text", NASTY)
def test_foreign_text_in_markdown_shows_and_does_nothing(text: str) -> None:
    for place in (inline(text), row([inline(text), "x"]), f"- {inline(text)}", f"# {inline(text)}"):
        kinds = {token.type for token in tokens(f"{place}\n")}
        assert not kinds & {"link_open", "image", "html_block", "em_open", "strong_open", "s_open", "fence"}, place
        assert {token.content for token in tokens(place) if token.type == "html_inline"} <= {"<!-- -->"}
    cells = tokens(f"| a | b |\n| - | - |\n{row([inline(text), 'x'])}\n")
    assert sum(token.type == "td_open" for token in cells) == 2
    (block,) = [token for token in tokens(fenced(text)) if token.level == 0]
    assert block.type == "fence"


# --- LaTeX

COMMAND = re.compile(r"\\([A-Za-z]+|.)")


def check_latex(text: str) -> None:
    """Hold a text to what the compiler would: braces and environments match, no command of anybody."""
    text = re.sub(r"(?<!\\)%.*", "", text)
    depth, math = 0, False
    for match in re.finditer(r"\\([A-Za-z]+|.)|[{}$&#_^~]", text, re.DOTALL):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            assert depth >= 0
        elif match[0] == "$":
            math = not math
        elif match[0] in "#_~":
            raise AssertionError(f"a bare {match[0]}")
        elif match[0] == "^":
            assert math, "a bare ^"
    assert depth == 0 and not math
    begun = re.findall(r"\\begin\{(\w+)\}", text)
    assert sorted(begun) == sorted(re.findall(r"\\end\{(\w+)\}", text))
    assert not set(COMMAND.findall(text)) & {
        "input",
        "include",
        "write",
        "openin",
        "read",
        "immediate",
        "csname",
        "def",
    }
    assert all(ord(letter) < 0x100 for letter in text)


def test_latex_tables_hold_all_tables_and_would_compile(made: Made, contents: dict[str, Contents]) -> None:
    files = dict(contents["latex-tables"].files)
    together = files.pop("all-tables.tex").decode()
    assert sorted(re.findall(r"\\input\{([^}]+)\}", together)) == sorted(files)
    assert len(files) >= sum(bool(table.rows and table.columns) for table in tables_of(made))
    for name, data in files.items():
        text = data.decode()
        check_latex(text)
        specification = re.search(r"\\begin\{(?:tabular|longtable)\}\{(.*)\}$", text, re.MULTILINE)
        assert specification, name
        columns = len(re.sub(r">\{[^}]*\}|p\{[^}]*\}", lambda m: "p" if m[0][0] == "p" else "", specification[1]))
        lines = [line for line in text.splitlines() if line.endswith(r" \\")]
        assert len(lines) > 1
        for line in lines:
            assert len(re.findall(r"(?<!\\)&", line)) == columns - 1, f"{name}: {line}"


@pytest.mark.parametrize("text", NASTY)
def test_foreign_text_in_latex_is_text(text: str) -> None:
    written = latex(text)
    check_latex(written)
    assert "\n" not in written and not written.startswith(("[", "*"))
    assert "&" not in written.replace(r"\&", "")


# --- JSON and figures


def test_json_says_what_the_page_says(made: Made, contents: dict[str, Contents]) -> None:
    content = json.loads(contents["json"].files[""])
    assert [section["key"] for section in content["sections"]] == [section.key for section in made.every]
    assert content["summary"] == json.loads(json.dumps(made.summary).encode("utf-8", "replace"))
    rows = [
        len(block["rows"]) for section in content["sections"] for block in section["blocks"] if block["kind"] == "table"
    ]
    expected = [len(block.rows) for section in made.every for block in section.body.blocks if isinstance(block, Table)]
    assert rows == expected and rows
    assert not [block for section in content["sections"] for block in section["blocks"] if block["kind"] == "unknown"]


def test_figures_stand_alone(made: Made, contents: dict[str, Contents]) -> None:
    files, drawn = contents["figures"].files, 0
    for section in made.every:
        drawn += sum(len(b.items) for b in section.body.blocks if isinstance(b, Charts))
    assert len(files) == 2 * drawn and drawn
    assert not contents["figures"].left_out
    for name, data in files.items():
        if name.endswith(".pdf"):
            assert data.startswith(b"%PDF-") and b"/FontFile" in data, name
            continue
        tree = ElementTree.fromstring(data)
        assert tree.get("font-family", "").startswith("Liberation Sans")
        for element in tree.iter():
            assert element.tag.rpartition("}")[2] not in ("script", "foreignObject", "image", "a", "style"), name
            for key, value in element.attrib.items():
                assert not key.startswith(("on", "data-")) and "var(" not in value, f"{name}: {key}={value}"
        assert b"http" not in data.replace(b"http://www.w3.org/2000/svg", b""), name
