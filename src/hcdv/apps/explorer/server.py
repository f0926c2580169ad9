"""The web application: pages and their JSON, decisions, images, and errors as one sentence."""

from __future__ import annotations

import csv
import io
import json
import secrets
import socket
from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any

from hcdv.apps.explorer import pages
from hcdv.apps.explorer.decisions import KINDS
from hcdv.apps.explorer.guard import HOSTS, Guard
from hcdv.apps.explorer.openapi import MOST_IDS, document
from hcdv.apps.explorer.routes import ROUTES, ROW, Param, Route, asked_of
from hcdv.apps.explorer.session import Session
from hcdv.apps.report.png import png
from hcdv.errors import DataError, HCDVError, StoreError, need
from hcdv.store import plain

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_TYPES = {
    "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml", "html": "text/html; charset=utf-8",
}  # fmt: skip
_SHELL = "page.html"
_EXPORT = (
    "id", "row", "decision", "label_given", "label_corrected", "suggested", "probability_wrong",
    "value", "decided_at",
)  # fmt: skip


def application(session: Session, token: str, port: int) -> Any:
    """The explorer of a session, as an ASGI application."""
    need("starlette", extra="explore", what="hcdv explore")
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.routing import Route as Path

    files = _files()
    routes = [
        Path("/", _home), Path("/openapi.json", _openapi),
        Path("/static/{name}", partial(_static, files)),
        Path("/decisions.csv", _answered(session, _decisions_csv)),
        Path("/decisions.txt", _answered(session, _decisions_txt)),
        Path("/decisions.json", _decide(session), methods=["POST"]),
        Path("/image.png", _answered(session, _image)),
    ]  # fmt: skip
    for route in ROUTES:
        routes.append(Path(f"{route.path}.json", _answered(session, partial(_json, route))))
        if route.is_page:
            routes.append(Path(route.path, partial(_page, files)))
    handlers: dict[Any, Any] = {
        HCDVError: _refused, OSError: _refused, HTTPException: _refused, 500: _failed,
    }  # fmt: skip
    return Guard(Starlette(routes=routes, exception_handlers=handlers), token, port)


def bound(port: int) -> socket.socket:
    """A socket of this machine alone; port 0 is any that is free."""
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((HOSTS[0], port))
        held.listen(64)
    except OSError as error:
        held.close()
        raise StoreError(
            f"--port must be one that is free, got {port}: {error.strerror or error}. Choose "
            "another, or leave --port out."
        ) from error
    return held


def serve(session: Session, held: socket.socket, token: str) -> None:
    """Answer until Ctrl-C."""
    uvicorn = need("uvicorn", extra="explore", what="hcdv explore")
    port = held.getsockname()[1]
    config = uvicorn.Config(
        application(session, token, port), log_level="error", access_log=False, lifespan="off",
        server_header=False, date_header=False, timeout_graceful_shutdown=1, ws="none",
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[held])


def new_token() -> str:
    """What only the browser of this start knows."""
    return secrets.token_urlsafe(24)


def _files() -> dict[str, bytes]:
    """The front end, read once: what is not named here cannot be asked for."""
    folder = resources.files("hcdv.apps.explorer").joinpath("static")
    return {
        each.name: each.read_bytes()
        for each in folder.iterdir()
        if each.name.rpartition(".")[2] in _TYPES
    }


def _home(request: Request) -> Response:
    from starlette.responses import RedirectResponse

    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/overview{query}", status_code=303)


def _openapi(request: Request) -> Response:  # noqa: ARG001, the framework's shape
    from starlette.responses import JSONResponse

    return JSONResponse(document())


def _static(files: dict[str, bytes], request: Request) -> Response:
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    name = request.path_params["name"]
    if name not in files or name == _SHELL:
        raise HTTPException(404)
    heads = {"cache-control": "no-cache"}
    return Response(files[name], media_type=_TYPES[name.rpartition(".")[2]], headers=heads)


def _page(files: dict[str, bytes], request: Request) -> Response:  # noqa: ARG001
    from starlette.responses import Response

    return Response(files[_SHELL], media_type=_TYPES["html"])


def _answered(
    session: Session, answer: Callable[[Session, Request], Response]
) -> Callable[[Request], Response]:
    """A plain function, which the framework runs in a thread beside others."""

    def run(request: Request) -> Response:
        return answer(session, request)

    return run


def _json(route: Route, session: Session, request: Request) -> Response:
    from starlette.responses import Response

    asked = asked_of(route, request.query_params.getlist)
    said = getattr(pages, route.answer)(session, asked)
    return Response(_text(said), media_type="application/json")


def _text(said: Any) -> bytes:
    return json.dumps(plain(said), ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "replace"
    )


def _decide(session: Session) -> Callable[[Request], Any]:
    async def run(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import Response

        body = await request.body()
        said = await run_in_threadpool(_decided, session, body)
        return Response(_text(said), media_type="application/json")

    return run


def _decided(session: Session, body: bytes) -> dict[str, Any]:
    """Check and keep a decision; nothing is kept of one that breaks a rule."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DataError("what is posted must be JSON.") from error
    if not isinstance(given, dict) or not given.keys() <= {"ids", "decision", "label"}:
        raise DataError("what is posted must be an object of ids, decision and label.")
    ids, decision, label = given.get("ids"), given.get("decision"), given.get("label")
    if not isinstance(ids, list) or not 1 <= len(ids) <= MOST_IDS:
        raise DataError(f"ids must be a list of 1 to {MOST_IDS:,} ids.")
    if not all(isinstance(each, str) and "\x00" not in each for each in ids):
        raise DataError("ids must be text, as the rows' pages have them.")
    if decision not in KINDS:
        raise DataError(
            f"decision must be one of {', '.join(KINDS)}, got {decision!r:.40}."
        )
    queries = session.now.queries
    if label is not None:
        _refuse_label(session, label, decision)
    if missing := [each for each in ids if each not in queries.decided(ids)]:
        raise DataError(f"ids must be of rows of the run, got {missing[0][:80]!r}.")
    session.decisions.add(dict.fromkeys(ids), decision, label)
    return {"n_decided": len(set(ids)), "n_decisions": len(session.decisions.latest())}


def _refuse_label(session: Session, label: Any, decision: str) -> None:
    from hcdv.apps.explorer.conditions import number

    if not isinstance(label, str) or len(label) > 500 or "\x00" in label:
        raise DataError("label must be text of at most 500 letters.")
    if decision != "wrong":
        raise DataError(f"label must be left out, got one with the decision {decision!r}.")
    now = session.now
    if not now.opened.has_classes:
        number(label, "label")
    elif not now.queries.is_label(label):
        raise DataError(f"label must be one that the run has, got {label[:80]!r}.")


def _decisions_csv(session: Session, request: Request) -> Response:  # noqa: ARG001
    from starlette.responses import Response

    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(_EXPORT)
    for each in reversed(pages.decisions(session, {})["decisions"]):
        row = each["row"] or {}
        lines.writerow([
            each["id"], row.get("row", ""), each["decision"], row.get("label", ""),
            each["label"] if each["label"] is not None else "", row.get("suggested", ""),
            row.get("doubt", ""), row.get("value", ""), each["at"],
        ])  # fmt: skip
    heads = {"content-disposition": 'attachment; filename="decisions.csv"'}
    return Response(
        out.getvalue().encode("utf-8", "replace"), media_type="text/csv", headers=heads
    )


_KIND = Param("decision", "which", choices=("wrong", "keep", "drop"), default="drop")


def _decisions_txt(session: Session, request: Request) -> Response:
    from starlette.responses import Response

    kind = _KIND.read(request.query_params.getlist("decision"))
    latest = session.decisions.latest().values()
    text = "".join(f"{each['id']}\n" for each in latest if each["decision"] == kind)
    heads = {"content-disposition": f'attachment; filename="{kind}.txt"'}
    return Response(text.encode("utf-8", "replace"), media_type="text/plain", headers=heads)


def _image(session: Session, request: Request) -> Response:
    from starlette.responses import Response

    asked = ROW.read(request.query_params.getlist("id"))
    queries = session.now.queries
    row = queries.row(asked)
    pixels = None if row is None else queries.image(row["id"])
    if pixels is None:
        raise pages.NotFoundError(
            f"id must be that of a row given as an image, got {asked[:80]!r}."
        )
    heads = {"cache-control": "private, max-age=600"}
    return Response(png(pixels), media_type="image/png", headers=heads)


def _refused(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """What went wrong, in one sentence."""
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse

    if isinstance(error, HTTPException):
        why = "there is no such page." if error.status_code == 404 else f"{error.detail}."
        return JSONResponse({"error": why}, error.status_code, headers=error.headers)
    status = 404 if isinstance(error, pages.NotFoundError) else 400
    if isinstance(error, OSError):
        status = 409
    return JSONResponse({"error": " ".join(str(error).split())}, status)


def _failed(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """A fault of the explorer's own; the terminal has the details."""
    from starlette.responses import JSONResponse

    return JSONResponse(
        {"error": "the explorer failed at this; what it met is told where it was started."},
        500,
    )
