"""The colours of drawings, and the CSS variables of the page that stand for them."""

from __future__ import annotations

INK, MUTED, RULE, PAPER = "#1d2329", "#5c6670", "#dde2e7", "#ffffff"
# What a chip says of a verdict, and what is wrong.
GOOD, WARN, BAD = "#0a6b4b", "#7a4b00", "#a32a00"
WIDTH = 380

# Hues of names: the first eight are those of Okabe and Ito.
SERIES = {
    "blue": "#0072b2",
    "vermillion": "#d55e00",
    "green": "#009e73",
    "purple": "#b0588f",
    "orange": "#e69f00",
    "sky": "#56b4e9",
    "ink": "#3a4149",
    "olive": "#594700",
    "brown": "#8c564b",
    "indigo": "#5254a3",
    "lime": "#7a9440",
    "rose": "#d6616b",
}
# Hues of the parts of a whole, which no name has.
PARTS = {"slate": "#7f95a9", "tan": "#cf9d7c", "khaki": "#b7b28a", "ash": "#c4cbd2", "heather": "#a493b5"}
VARIABLES = (
    {value: f"var(--s-{name})" for name, value in SERIES.items()}
    | {value: f"var(--p-{name})" for name, value in PARTS.items()}
    | {
        INK: "var(--ink)",
        MUTED: "var(--muted)",
        RULE: "var(--rule)",
        PAPER: "var(--paper)",
        GOOD: "var(--good)",
        WARN: "var(--warn)",
        BAD: "var(--bad)",
    }
)
