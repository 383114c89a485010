"""Who may ask: names, the token, and no body. ASGI, in front of the application.

A page that somebody's browser has open may send requests to this machine, under a name
that it made point here. So the Host has to be an address, localhost, or a name that the
operator wrote.
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
    """What the guard goes by."""

    token: str  # "": whoever reaches us may ask
    hosts: frozenset[str]
    any_host: bool = False  # there is nothing to be had under another one's name

    @classmethod
    def of(cls, http: Http) -> "GuardRules":
        listen = http.listen.rpartition(":")[0].strip("[]")
        names = {"localhost", listen, socket.gethostname(), *http.hosts}
        return cls(http.token, frozenset(name.lower().rstrip(".") for name in names))

    def knows(self, host: str) -> bool:
        """Return whether a Host header is an address, or a name of ours."""
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
        """Return whether it shows the token: as Bearer, or as a browser's password."""
        if not self.token:
            return True
        return hmac.compare_digest(_digest(_shown(authorization)), _digest(self.token))

    def refusal(self, headers: Headers) -> Refusal | None:
        """Return why a request is not answered; None: it is."""
        if not self.any_host and not self.knows(headers.get("host", "")):
            text = (
                "This Host is not known here: ask by address, localhost, or a name in"
            )
            return Refusal(400, f"{text} [http] hosts.", {})
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return Refusal(413, "No request has a body here.", {"connection": "close"})
        if not self.admits(headers.get("authorization", "")):
            text = "The token of [http] is wanted: as Authorization: Bearer, or as"
            headers_of = {"www-authenticate": _ASKS, "connection": "close"}
            return Refusal(_UNPROVEN, f"{text} password of any user.", headers_of)
        return None


def _too_large(scope: Scope) -> Refusal | None:
    """Refuse a head that came at once, which the listener takes whatever its size."""
    size = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    size += sum(len(name) + len(value) for name, value in scope["headers"])
    if size <= LARGEST_HEAD:
        return None
    text = f"No head is larger than {LARGEST_HEAD >> 10} KiB here."
    return Refusal(431, text, {"connection": "close"})


def is_cross_site(headers: Headers) -> bool:
    """Return whether a browser asks on behalf of another site's page."""
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
    """Make all of one length: the comparison tells nothing of that either."""
    return hashlib.sha256(text.encode(errors="replace")).digest()


class Guard:
    """Refuses, or passes on; no answer is kept by anybody."""

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
        refusal = _too_large(scope) or self._rules.refusal(given)
        answer: Any = self._app
        unproven = refusal is not None and refusal.status == _UNPROVEN
        if unproven and given.get("authorization"):  # a browser asks without, at first
            await self._wrong.one((scope.get("client") or ("?",))[0])
        if refusal is not None:
            answer = PlainTextResponse(
                refusal.text + "\n", refusal.status, headers=dict(refusal.headers)
            )
        await answer(scope, receive, sent)
