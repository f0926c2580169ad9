"""Who is answered: this machine's browser, with the token of this start, and nobody else.

Host names are checked, so that no page elsewhere can rebind its own name to this machine; the
token comes once in the address and then in a cookie that other sites' requests never carry;
what changes something must come from this very page.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

HOSTS = ("127.0.0.1", "localhost")
MOST_BYTES = 1 << 18  # of what is posted
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
)
Scope = Mapping[str, Any]


class Guard:
    """Around the application: refuses first, and adds what every answer carries."""

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app, self.token, self.port = app, token, port
        self.cookie = f"hcdv-explore-{port}"
        self.hosts = {f"{host}:{port}" for host in HOSTS}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        new = [] if refusal else self._new_cookie(scope)

        async def told(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in (*HEADERS, *new)]
                if not any(name == b"cache-control" for name, _ in message["headers"]):
                    own.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        if refusal:
            await _refuse(told, *refusal)
        else:
            await self.app(scope, receive, told)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        heads = _heads(scope)
        if heads.get("host", "").lower() not in self.hosts:
            return (
                403,
                "Host must be this machine's own: open the address that hcdv printed.",
            )
        if not self._knows_token(scope, heads):
            return 403, (
                "the address must hold the token of this start: open the one that hcdv explore "
                "printed, whole."
            )
        if scope["method"] in ("GET", "HEAD"):
            return None
        if heads.get("origin", "") not in {f"http://{host}" for host in self.hosts}:
            return 403, "changes must come from the explorer's own page, with its Origin."
        size = heads.get("content-length", "")
        if not size.isdecimal() or int(size) > MOST_BYTES:
            return (
                413,
                f"what is posted must have a length of at most {MOST_BYTES:,} bytes.",
            )
        return None

    def _knows_token(self, scope: Scope, heads: Mapping[str, str]) -> bool:
        held = [*_tokens(scope), _cookie(heads.get("cookie", ""), self.cookie)]
        return any(_same(each, self.token) for each in held)

    def _new_cookie(self, scope: Scope) -> list[tuple[str, str]]:
        if not any(_same(each, self.token) for each in _tokens(scope)):
            return []
        about = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        return [("set-cookie", about)]


def _heads(scope: Scope) -> dict[str, str]:
    """Headers by name; of one sent twice both, so that neither is taken for the other."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}; {text}" if key in found else text
    return found


def _tokens(scope: Scope) -> list[str]:
    query = scope.get("query_string", b"").decode("latin-1")
    try:
        return parse_qs(query, max_num_fields=200).get("token", [])[:2]
    except ValueError:
        return []


def _cookie(text: str, name: str) -> str:
    try:
        held = SimpleCookie(text).get(name)
    except CookieError:
        return ""
    return held.value if held is not None else ""


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())


async def _refuse(send: Callable[[dict[str, Any]], Any], status: int, why: str) -> None:
    body = json.dumps({"error": why}).encode()
    heads = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": heads})
    await send({"type": "http.response.body", "body": body})
