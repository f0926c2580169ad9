"""What a notebook shows of a result: fragments of HTML, light or dark as it is around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_COLOURS = ("#3b76c4", "#2f9e77", "#d9822b", "#8a63c9")
_BOX = (
    "border:1px solid rgba(128,128,128,.4);border-radius:8px;padding:10px 14px;"
    "max-width:680px;font-family:system-ui,sans-serif;font-size:13px;line-height:1.45"
)
_CELL = "text-align:left;padding:2px 14px 2px 0;vertical-align:top"


def card(title: str, *parts: str) -> str:
    """A frame with a title; parts are HTML already."""
    head = f'<div style="font-size:15px;font-weight:600;margin-bottom:4px">{escape(title)}</div>'
    return f'<div style="{_BOX}">{head}{"".join(parts)}</div>'


def pairs(facts: Iterable[tuple[str, str]]) -> str:
    """Names and what is said of them, a line each."""
    lines = "".join(
        f'<tr style="background:none"><th scope="row" style="{_CELL};font-weight:400;'
        f'opacity:.75">{escape(name)}</th><td style="{_CELL}">{escape(said)}</td></tr>'
        for name, said in facts
    )
    return f'<table style="border:none;margin:4px 0">{lines}</table>'


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A small table under a few words."""
    head = "".join(
        f'<th scope="col" style="{_CELL}">{escape(name)}</th>' for name in columns
    )
    body = "".join(
        '<tr style="background:none">'
        + "".join(f'<td style="{_CELL}">{escape(str(cell))}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    said = f'<caption style="text-align:left;opacity:.75">{escape(caption)}</caption>'
    return f'<table style="border:none;margin:6px 0">{said}<tr>{head}</tr>{body}</table>'


def bar(parts: dict[str, float]) -> str:
    """Parts of a whole, each as wide as it is large; below zero, hatched."""
    whole = sum(abs(part) for part in parts.values()) or 1.0
    pieces = "".join(
        f'<span title="{escape(name)} {part:+.4g}" style="display:inline-block;height:12px;'
        f"width:{100 * abs(part) / whole:.2f}%;background:{_COLOURS[k % len(_COLOURS)]};"
        f'opacity:{1.0 if part >= 0 else 0.4}"></span>'
        for k, (name, part) in enumerate(parts.items())
    )
    said = ", ".join(f"{name} {part:+.4f}" for name, part in parts.items())
    return f'<div role="img" aria-label="{escape(said)}" style="font-size:0">{pieces}</div>'
