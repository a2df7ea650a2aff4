"""The colours of drawings, and the CSS variables of the page that stand for them."""

from __future__ import annotations

INK, MUTED, RULE, PAPER = "#1d2329", "#5c6670", "#dde2e7", "#ffffff"
WIDTH = 380

SERIES = {
    "blue": "#0072b2",
    "vermillion": "#d55e00",
    "green": "#009e73",
    "purple": "#b0588f",
    "orange": "#e69f00",
    "sky": "#56b4e9",
    "ink": "#3a4149",
    "olive": "#594700",
}
VARIABLES = {value: f"var(--s-{name})" for name, value in SERIES.items()} | {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    RULE: "var(--rule)",
    PAPER: "var(--paper)",
}
