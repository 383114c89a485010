"""`POST /backfill`: a request as the control socket takes it, from another machine.

The source's worker looks for the tables: this process asks no server. One request is
under way at a time, and a minute has room for a few.
"""

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from walstream.config import Config, condition
from walstream.errors import (
    ConfigError,
    PermissionLacking,
    Transient,
    WalstreamError,
)
from walstream.service.http.board import Board
from walstream.service.http.guard import is_cross_site
from walstream.state import control
from walstream.state.control_message import FindRequest, request_line
from walstream.telemetry import runtime

_WAIT_S: Final = 15.0  # less than a client has to take its answer
_MOST: Final = 10  # requests
_WITHIN_S: Final = 60.0
_KEYS: Final = frozenset({"source", "tables", "replace", "where"})
_CODES: Final = (
    (ConfigError, HTTPStatus.BAD_REQUEST),
    (PermissionLacking, HTTPStatus.FORBIDDEN),
    (Transient, HTTPStatus.SERVICE_UNAVAILABLE),
)


@dataclass(slots=True)
class BackfillPost:
    """Takes the requests of all clients, one after the other."""

    board: Board
    _began: deque[float] = field(default_factory=deque)  # the last requests, monotonic
    _busy: bool = False

    async def __call__(self, request: Request) -> Response:
        """Pass a request on, and answer when its worker has it on disk."""
        if request.method != "POST":
            text = 'POST /backfill with {"source": "…", "tables": ["…"]}'
            return _error(text, HTTPStatus.METHOD_NOT_ALLOWED)
        if is_cross_site(request.headers):
            text = "requests from pages of other sites are refused"
            return _error(text, HTTPStatus.FORBIDDEN)
        config = self.board.config
        if not config.http.token:  # any user of this machine may ask
            text = "[http] has no token: use walstream backfill"
            return _error(text, HTTPStatus.FORBIDDEN)
        try:
            asked = read(config, await request.body())
        except ValueError as error:
            return _error(str(error), HTTPStatus.BAD_REQUEST)
        if not self._may_begin():
            text = f"too many requests: one at a time, and {_MOST} a minute"
            response = _error(text, HTTPStatus.TOO_MANY_REQUESTS)
            response.headers["retry-after"] = str(int(_WITHIN_S))
            return response
        self._busy = True
        try:
            return await asyncio.to_thread(_pass_on, Path(config.state), asked)
        finally:
            self._busy = False

    def _may_begin(self) -> bool:
        now = runtime.monotonic()
        while self._began and now - self._began[0] > _WITHIN_S:
            self._began.popleft()
        if self._busy or len(self._began) >= _MOST:
            return False
        self._began.append(now)
        return True


def read(config: Config, body: bytes) -> FindRequest:
    """Return what a body asks for; raise ValueError for anything else."""
    try:
        found: Any = json.loads(body)
        json.dumps(found, ensure_ascii=False).encode()  # halves of surrogate pairs
    except (ValueError, RecursionError):
        raise ValueError("the body is not JSON") from None
    if not isinstance(found, Mapping):
        raise ValueError("the body is not a JSON object")  # noqa: TRY004 - as all here
    if unknown := sorted(set(found) - _KEYS):
        raise ValueError(f"the body has unknown keys: {', '.join(map(repr, unknown))}")
    tables = found.get("tables")
    if not (isinstance(tables, list) and tables and all(map(_is_text, tables))):
        raise ValueError('"tables" has to be a list of names or patterns')
    replace, where = found.get("replace", False), found.get("where", "")
    if not isinstance(replace, bool):
        raise ValueError('"replace" has to be true or false')  # noqa: TRY004
    if not isinstance(where, str):
        raise ValueError('"where" has to be a text')  # noqa: TRY004
    try:
        if where:
            condition.check_plain(where)
    except ValueError as error:
        raise ValueError(
            f'"where" {error}: by HTTP it compares columns; walstream backfill --where '
            "takes more"
        ) from None
    asked = FindRequest(_source(config, found), tuple(tables), replace, where)
    if len(request_line(asked)) > control.LONGEST:
        raise ValueError("the request is too long: ask for fewer tables at a time")
    return asked


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _source(config: Config, found: Mapping[str, object]) -> str:
    """Return the source that is meant: without a name the only one."""
    known = list(config.postgres_sources)
    name = found.get("source", known[0] if len(known) == 1 else "")
    if name not in known:
        raise ValueError(
            f'"source" has to be one of the postgres sources: {", ".join(known)}'
        )
    return str(name)


def _pass_on(folder: Path, asked: FindRequest) -> Response:
    try:
        answer = control.ask(folder, asked, _WAIT_S)
    except WalstreamError as error:
        code = next(
            (code for kind, code in _CODES if isinstance(error, kind)),
            HTTPStatus.INTERNAL_SERVER_ERROR,
        )
        return _error(str(error.args[0]), code)
    if answer is None:
        return _error("walstream is ending", HTTPStatus.SERVICE_UNAVAILABLE)
    body = {
        "source": asked.source,
        "tables": list(answer.tables),
        "count": answer.count,
        "left_out": dict(answer.left_out),
    }
    return JSONResponse(body, HTTPStatus.ACCEPTED)


def _error(text: str, code: HTTPStatus) -> JSONResponse:
    return JSONResponse({"error": text}, code)
