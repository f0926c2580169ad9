"""Doubted labels one after the other before a person, who keeps, changes or drops them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from hcdv.store.decisions import FINAL, Decision, decide, decisions

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.estimator import HCDV

_KEYS = {
    "k": "keep", "r": "relabel as suggested", "o": "other label", "d": "drop the row",
    "s": "skip", "u": "undo the last", "q": "quit",
}  # fmt: skip
_COLUMNS = 24  # of a row that are shown
_CELL = 300  # characters of a cell
_NEAREST = 3
_SHADES = " .:-=+*#%@"
_WIDEST = 64  # of an image, in characters


def review(folder: Path, model: HCDV, frame: pd.DataFrame) -> None:
    """Step through suspects that are not decided yet; what is decided is kept at once."""
    known = decisions(folder)
    done = {name for name, made in known.items() if made.decision in FINAL}
    ids = [_plain(name) for name in model.ids_[frame["row"]]]
    todo = [place for place, name in enumerate(ids) if name not in done]
    click.echo(
        f"{len(frame):,} suspects, {len(frame) - len(todo):,} decided before. "
        + ", ".join(f"{key} {what}" for key, what in _KEYS.items())
    )
    at, past = 0, list[int]()
    while at < len(todo):
        line = frame.iloc[todo[at]]
        click.echo(f"\n{_shown(model, line, f'{at + 1} of {len(todo)}')}")
        made = _asked(model, ids[todo[at]], line, can_undo=bool(past))
        if made is None:
            break
        if made == "undo":
            at = past.pop()
            name, given = ids[todo[at]], _plain(frame.iloc[todo[at]]["given"])
            decide(folder, Decision(name, given, "undo"))
            continue
        decide(folder, made)
        click.echo(_said(made))
        past.append(at)
        at += 1
    click.echo(f"\n{_summed(folder)}")


def _asked(model: HCDV, name: Any, line: Any, *, can_undo: bool) -> Any:
    """A decision, "undo", or None to stop."""
    given, suggested = _plain(line["given"]), _plain(line["suggested"])
    while True:
        key, rest = _key()
        if key in ("", "q"):
            return None
        if key == "u" and can_undo:
            return "undo"
        if key == "k":
            return Decision(name, given, "keep")
        if key == "d":
            return Decision(name, given, "drop")
        if key == "s":
            return Decision(name, given, "skip")
        if key == "r" and suggested != given:
            return Decision(name, given, "relabel", suggested)
        if key == "o":
            label = _label(model, rest)
            if label is not None:
                return Decision(name, given, "relabel", label)
            continue
        why = {"u": "there is nothing to undo", "r": "no other label is suggested"}
        known = ", ".join(_KEYS)
        click.echo(f"{why.get(key, f'{key!r} is none of {known}')}; which is it?")


def _key() -> tuple[str, str]:
    """The key pressed, or the first letter of a line that is piped in, with what follows it."""
    if sys.stdin.isatty():
        click.echo("k r o d s u q > ", nl=False)
        try:
            key = click.getchar().lower()
        except EOFError:
            key = ""
        click.echo(key if key.isprintable() else "")
        return ("" if key == "\x04" else key), ""
    line = sys.stdin.readline()
    word, _, rest = line.strip().partition(" ")
    return ("", "") if not line else (word[:1].lower() or " ", rest.strip())


def _label(model: HCDV, typed: str) -> Any:
    """A label there is, as typed; None if there is none such."""
    classes = model.run_.target.classes
    if not typed:
        if sys.stdin.isatty():
            click.echo("label: ", nl=False)
        typed = sys.stdin.readline().strip()
    if classes is None:
        try:
            number = float(typed)
        except ValueError:
            number = np.nan
        if np.isfinite(number):
            return number
        click.echo(f"the label must be a number, got {typed!r}; which key?")
        return None
    names = classes.astype(str).tolist()
    if typed in names:
        return _plain(classes[names.index(typed)])
    shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    click.echo(f"the label must be one of {shown}, got {typed!r}; which key?")
    return None


def _shown(model: HCDV, line: Any, place: str) -> str:
    """The row as it was given, its labels, and the rows nearest to it."""
    from hcdv.uses.explanation import neighbours

    row = int(line["row"])
    lines = [
        f"{place}  row {row} (id {model.ids_[row]})", *_as_given(model, row),
        f"  given       {_short(line['given'])}",
        (f"  suggested   {_short(line['suggested'])}   (the given label is wrong with a chance of "
        f"{line['probability']:.2f})"),
    ]  # fmt: skip
    near = neighbours(model.run_, row)
    for name, rows in zip(("same label", "other"), near, strict=True):
        lines += [
            f"  near, {name:<11} row {each['row']} ({_short(each['label'])}, cosine "
            f"{each['cosine']:.2f}){_glimpse(model, each['row'])}"
            for each in rows[:_NEAREST]
        ]
    return "\n".join(lines)


def _as_given(model: HCDV, row: int) -> list[str]:
    if model.given_ is None:
        return ["  (the rows themselves were not kept with this run)"]
    table = model.given_.rows(model.ids_[[row]]).table
    if isinstance(table, np.ndarray):
        return _picture(table[0])
    cells = table.iloc[0]
    lines = [f"  {name} = {_short(cells[name])}" for name in table.columns[:_COLUMNS]]
    if table.shape[1] > _COLUMNS:
        lines.append(f"  … {table.shape[1] - _COLUMNS} more columns")
    return lines


def _glimpse(model: HCDV, row: int) -> str:
    """The first text of a neighbour, where rows are of text."""
    if model.given_ is None:
        return ""
    table = model.given_.rows(model.ids_[[row]]).table
    if isinstance(table, np.ndarray):
        return ""
    texts = [cell for cell in table.iloc[0] if isinstance(cell, str) and len(cell) > 20]
    return f": {_short(texts[0], 60)}" if texts else ""


def _picture(image: np.ndarray[Any, Any]) -> list[str]:
    """A small picture in characters, every second line of it: they are twice as high as wide."""
    gray = image.mean(axis=2) if image.ndim == 3 else image
    step = max(1, -(-gray.shape[1] // _WIDEST))
    shade = (gray[:: 2 * step, ::step] / 256 * len(_SHADES)).astype(int)
    return ["  " + "".join(_SHADES[each] for each in line) for line in shade.tolist()]


def _said(made: Decision) -> str:
    if made.decision == "relabel":
        return f"  {made.id}: {_short(made.given)} → {_short(made.label)}"
    return f"  {made.id}: {made.decision}"


def _summed(folder: Path) -> str:
    made = [each.decision for each in decisions(folder).values()]
    counts = ", ".join(f"{made.count(kind):,} {kind}" for kind in (*FINAL, "skip"))
    return f"decisions     {counts}; the same command goes on, --apply -o FILE writes the table"


def _short(value: Any, most: int = _CELL) -> str:
    text = f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
