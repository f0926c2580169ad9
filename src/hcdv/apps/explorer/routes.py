"""One table of everything the explorer serves: paths, parameters, and who answers.

The server, the checks of what is asked, and the OpenAPI document are all made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hcdv.apps.explorer.conditions import OPERATORS, number
from hcdv.errors import DataError

MOST_LETTERS = 8000
_SORTS = "a column of the rows"


@dataclass(frozen=True)
class Param:
    """A parameter of a query: its name, kind and range."""

    name: str
    about: str
    kind: str = "text"  # text, integer, number, flag
    default: Any = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    repeated: bool = False
    required: bool = False

    def read(self, given: list[str]) -> Any:
        """What was given, checked; the default where nothing was."""
        if not given:
            if self.required:
                raise DataError(f"{self.name} must be given: {self.about}")
            return [] if self.repeated else self.default
        if self.repeated:
            return [self._one(each) for each in given[:20]]
        return self._one(given[-1])

    def _one(self, text: str) -> Any:
        if len(text) > MOST_LETTERS or "\x00" in text:
            raise DataError(
                f"{self.name} must be text of at most {MOST_LETTERS:,} letters, without zero bytes."
            )
        if self.kind == "flag":
            if text not in ("0", "1"):
                raise DataError(f"{self.name} must be 0 or 1, got {text[:40]!r}.")
            return text == "1"
        if self.kind in ("integer", "number"):
            return self._number(text)
        if self.choices and text not in self.choices:
            raise DataError(
                f"{self.name} must be one of {', '.join(self.choices)}, got {text[:40]!r}."
            )
        return text

    def _number(self, text: str) -> int | float:
        found = number(text, self.name)
        if self.kind == "integer" and not isinstance(found, int):
            raise DataError(f"{self.name} must be a whole number, got {text[:40]!r}.")
        low, high = self.least, self.most
        if (low is not None and found < low) or (high is not None and found > high):
            raise DataError(
                f"{self.name} must lie from {low:g} to {high:g}, got {text[:40]!r}."
            )
        return found


@dataclass(frozen=True)
class Route:
    """Something that is served: `answer(session, asked)` gives what its JSON holds."""

    path: str  # of the page; the JSON is at the same path and .json
    title: str
    answer: str  # name of the function in `pages`
    params: tuple[Param, ...] = ()
    is_page: bool = True
    holds: Mapping[str, str] = field(default_factory=dict)  # JSON type by required key


SELECTION = (
    Param("q", "words that occur in the id, the label or the cells; case does not matter"),
    Param(
        "filter", f"a column, one of {' '.join(OPERATORS)} and a value: value<0; repeatable",
        repeated=True,
    ),
    Param("coalition", "number of a coalition that holds the rows", "integer",
          least=0, most=2**31),
    Param("suspects", "1: labels more likely wrong than right", "flag", False),
    Param("decision", "what was decided on the rows",
          choices=("wrong", "keep", "drop", "any", "none")),
    Param("polygon", "corners on the map that the rows lie within: x,y;x,y;x,y"),
)  # fmt: skip
PAGING = (
    Param("sort", f"{_SORTS} to sort by", default="row"),
    Param("down", "1: the largest first", "flag", False),
    Param("limit", "rows on a page", "integer", 50, least=1, most=200),
    Param("offset", "rows before this page", "integer", 0, least=0, most=10**9),
)
ROW = Param("id", "the id of a row", required=True)
BOX = tuple(
    Param(name, f"{side} edge on the map", "number", least=-1e6, most=1e6)
    for name, side in (("x0", "left"), ("y0", "lower"), ("x1", "right"), ("y1", "upper"))
)

ROUTES = (
    Route("/overview", "Overview", "overview", holds={"run": "object", "spread": "object"}),
    Route(
        "/coalitions", "Coalitions", "coalitions",
        (Param("node", "number of a coalition", "integer", 0, least=0, most=2**31),),
        holds={"node": "object", "path": "array", "below": "array"},
    ),
    Route(
        "/description", "What sets a coalition apart", "description",
        (Param("node", "number of a coalition", "integer", 0, least=0, most=2**31),),
        is_page=False, holds={"words": "string"},
    ),
    Route("/map", "Map", "map_page", SELECTION, holds={"extent": "array"}),
    Route(
        "/spots", "A piece of the map", "spots",
        (*BOX, Param("colour", "what cells are coloured by", default="value",
                     choices=("value", "doubt", "label", "density")), *SELECTION),
        is_page=False, holds={"box": "array", "n_rows": "integer"},
    ),
    Route("/rows", "Rows", "rows", (*SELECTION, *PAGING),
          holds={"rows": "array", "totals": "object"}),
    Route("/worth", "Worth together", "worth", SELECTION, holds={"summed": "object"}),
    Route("/row", "Row", "row", (ROW,), holds={"row": "object", "path": "array"}),
    Route("/suspects", "Suspects", "suspects", (*SELECTION, *PAGING),
          holds={"rows": "array", "totals": "object"}),
    Route("/decisions", "Decisions", "decisions", holds={"decisions": "array"}),
    Route("/compare", "Compare", "compare",
          (Param("limit", "rows that moved most", "integer", 50, least=1, most=200),),
          holds={"facts": "object", "movers": "array"}),
    Route("/history", "History", "history",
          (Param("since", "number of an update: tell only later ones", "integer", -1,
                 least=-1, most=2**31),),
          holds={"shown": "integer", "updates": "array"}),
)  # fmt: skip
BY_PATH: dict[str, Route] = {route.path: route for route in ROUTES}

Answer = Callable[..., dict[str, Any]]


def asked_of(route: Route, query: Callable[[str], list[str]]) -> dict[str, Any]:
    """The parameters of a query, checked."""
    return {param.name: param.read(query(param.name)) for param in route.params}
