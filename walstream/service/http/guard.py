"""Checks of each request: Host, token, size of a body. ASGI, before the application.

A page in any browser may send requests to this machine, under a name that its site made
point here. So the Host has to be an address, localhost, or a name in `hosts`.
"""

import base64
import contextlib
import hashlib
import hmac
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from walstream.config.model import Http
from walstream.service.http.token_failures import WrongTokens

_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]@]+)(?::[0-9]{1,5})?")
_ASKS: Final = 'Basic realm="walstream", charset="UTF-8"'
_UNPROVEN: Final = 401
LARGEST_HEAD: Final = 16 << 10  # bytes
LARGEST_BODY: Final = 4096  # bytes
BODY_PATH: Final = "/backfill"
"""The one path whose requests have a body."""
_CROSS: Final = frozenset({"cross-site", "same-site"})
_HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    text: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GuardRules:
    """The rules of [http] that the guard applies."""

    token: str  # "": every client may ask
    hosts: frozenset[str]
    any_host: bool = False  # the answers are worth nothing to another site

    @classmethod
    def of(cls, http: Http) -> "GuardRules":
        listen = http.listen.rpartition(":")[0].strip("[]")
        names = {"localhost", listen, socket.gethostname(), *http.hosts}
        return cls(http.token, frozenset(name.lower().rstrip(".") for name in names))

    def knows(self, host: str) -> bool:
        """Return True if a Host header is an address, or one of our names."""
        found = _HOST.fullmatch(host)
        if not found:
            return False
        name = found[1].strip("[]").lower().rstrip(".")
        if name in self.hosts or name.endswith(".localhost"):
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True

    def admits(self, authorization: str) -> bool:
        """Return True if it has the token: as Bearer, or as a browser's password."""
        if not self.token:
            return True
        return hmac.compare_digest(_digest(_shown(authorization)), _digest(self.token))

    def refusal(self, headers: Headers, *, takes_body: bool = False) -> Refusal | None:
        """Return why a request is not answered; None: it is.

        `takes_body`: its path has a use for a body.
        """
        if not self.any_host and not self.knows(headers.get("host", "")):
            text = "Unknown Host: use an address, localhost, or a name of [http] hosts."
            return Refusal(400, text, {})
        if text := _refused_body(headers, takes_body=takes_body):
            return Refusal(413, text, {"connection": "close"})
        if not self.admits(headers.get("authorization", "")):
            text = "Send the token of [http]: as Authorization: Bearer, or as the"
            headers_of = {"www-authenticate": _ASKS, "connection": "close"}
            return Refusal(_UNPROVEN, f"{text} password of any user name.", headers_of)
        return None


def _refused_body(headers: Headers, *, takes_body: bool) -> str:
    """Return why a body is refused; "": there is none, or a small one is wanted."""
    length = headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in headers:
        return ""
    if not takes_body:
        return "Requests with a body are refused."
    small = length.isascii() and length.isdigit() and int(length) <= LARGEST_BODY
    if small and "transfer-encoding" not in headers:
        return ""
    return f"Bodies above {LARGEST_BODY} bytes or without a length are refused."


def _too_large(scope: Scope) -> Refusal | None:
    """Refuse a head that came at once, which the listener takes whatever its size."""
    size = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    size += sum(len(name) + len(value) for name, value in scope["headers"])
    if size <= LARGEST_HEAD:
        return None
    text = f"Request heads larger than {LARGEST_HEAD >> 10} KiB are refused."
    return Refusal(431, text, {"connection": "close"})


def is_cross_site(headers: Headers) -> bool:
    """Return True if a browser asks on behalf of another site's page."""
    if headers.get("sec-fetch-site", "") in _CROSS:
        return True
    origin = headers.get("origin", "")
    return bool(origin) and origin.partition("://")[2] != headers.get("host", "")


def _shown(authorization: str) -> str:
    """Return the token of a Bearer, or the password of a Basic; "" for none."""
    kind, _, shown = authorization.partition(" ")
    if kind.lower() == "bearer":
        return shown.strip()
    if kind.lower() == "basic":
        with contextlib.suppress(ValueError):
            return base64.b64decode(shown, validate=True).decode().partition(":")[2]
    return ""


def _digest(text: str) -> bytes:
    """Return a digest: all have one length, which the comparison cannot leak."""
    return hashlib.sha256(text.encode(errors="replace")).digest()


class Guard:
    """Refuses requests or passes them on; no cache keeps an answer."""

    def __init__(self, app: ASGIApp, rules: GuardRules, wrong: WrongTokens) -> None:
        self._app = app
        self._rules = rules
        self._wrong = wrong

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        given = Headers(scope=scope)
        takes_body = (scope["method"], scope["path"]) == ("POST", BODY_PATH)
        refusal = _too_large(scope) or self._rules.refusal(given, takes_body=takes_body)
        answer: Any = self._app
        unproven = refusal is not None and refusal.status == _UNPROVEN
        if unproven and given.get("authorization"):  # a browser asks without, at first
            await self._wrong.one((scope.get("client") or ("?",))[0])
        if refusal is not None:
            answer = PlainTextResponse(
                refusal.text + "\n", refusal.status, headers=dict(refusal.headers)
            )
        await answer(scope, receive, sent)
