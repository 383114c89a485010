"""The routes. Each answers from the board: no server, no folder, no worker is asked."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from walstream.service.http import metrics as exposition
from walstream.service.http import page
from walstream.service.http.board import Board, Truth
from walstream.service.http.guard import Guard, GuardRules, is_cross_site
from walstream.service.http.text import stats_lines, status_lines
from walstream.status.model import adapter
from walstream.telemetry import runtime

_JSON = "application/json"
_SAY_AGAIN_S = 60.0
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Answers:
    """What each path says."""

    board: Board
    set_debug: Callable[[bool], str]
    written: exposition.CachedMetrics

    async def page(self, _request: Request) -> Response:
        html = page.render(self._truth(), self.board.samples)
        return HTMLResponse(html, headers={"content-security-policy": page.POLICY})

    async def health(self, _request: Request) -> Response:
        return _health(self._truth())

    async def ready(self, _request: Request) -> Response:
        return _ready(self._truth().unready)

    async def status(self, request: Request) -> Response:
        truth = self._truth()
        code = HTTPStatus.OK if truth.well else HTTPStatus.INTERNAL_SERVER_ERROR
        if _JSON in request.headers.get("accept", ""):
            body = adapter().dump_json(truth.status)
            return Response(body, code, media_type=_JSON)
        return _text("\n".join(status_lines(truth)), code)

    async def stats(self, _request: Request) -> Response:
        return _text("\n".join(stats_lines(self._truth().status)))

    async def metrics(self, request: Request) -> Response:
        accept = request.headers.get("accept", "")
        body, content_type = self.written.of(self.board.config, self._truth(), accept)
        return Response(body, headers={"content-type": content_type})

    async def debug(self, request: Request) -> Response:
        what = request.path_params.get("what", "")
        if request.method != "POST" or what not in {"on", "off"}:
            # not by GET, which a browser sends for an image in anybody's page
            return _text("POST /debug/on or /debug/off", HTTPStatus.BAD_REQUEST)
        if is_cross_site(request.headers):
            text = "not for the pages of other sites"
            return _text(text, HTTPStatus.FORBIDDEN)
        if not self.board.config.http.token:  # any user of this machine may ask
            text = f"[http] has no token, so this is refused: walstream debug {what}"
            return _text(text, HTTPStatus.FORBIDDEN)
        level = self.set_debug(what == "on")
        return _text(f"every process logs from level {level} on")

    def _truth(self) -> Truth:
        return _known(self.board)


@dataclass(frozen=True, slots=True)
class Probes:
    """What two of the paths say to those who show no token."""

    board: Board

    async def health(self, _request: Request) -> Response:
        return _health(_known(self.board))

    async def ready(self, _request: Request) -> Response:
        unready = _known(self.board).unready
        return _ready(["not ready"] if unready else [])


def _known(board: Board) -> Truth:
    truth = board.truth()
    if truth is None:
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "walstream is starting")
    return truth


def _health(truth: Truth) -> Response:
    if truth.hangs:
        return _text(truth.hangs, HTTPStatus.INTERNAL_SERVER_ERROR)
    return _text("Alive and well")


def _ready(unready: list[str]) -> Response:
    if unready:
        return _text("\n".join(unready), HTTPStatus.SERVICE_UNAVAILABLE)
    return _text("ready")


def make(board: Board, set_debug: Callable[[bool], str]) -> ASGIApp:
    """Make the application, with its guard."""
    answers = Answers(board, set_debug, exposition.CachedMetrics())
    errors = Errors()
    any_method = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    app = Starlette(
        routes=[
            Route("/", answers.page),
            Route("/health", answers.health),
            Route("/ready", answers.ready),
            Route("/status", answers.status),
            Route("/stats", answers.stats),
            Route("/metrics", answers.metrics),
            Route("/debug", answers.debug, methods=any_method),
            Route("/debug/{what:path}", answers.debug, methods=any_method),
        ],
        exception_handlers={HTTPException: errors.say, Exception: errors.say_defect},
    )
    app.router.redirect_slashes = False
    return Guard(app, GuardRules.of(board.config.http), board.wrong)


def make_probes(board: Board) -> ASGIApp:
    """Make what answers probes, to whoever asks: no name, and nothing else."""
    probes = Probes(board)
    errors = Errors()
    app = Starlette(
        routes=[Route("/health", probes.health), Route("/ready", probes.ready)],
        exception_handlers={HTTPException: errors.say, Exception: errors.say_defect},
    )
    app.router.redirect_slashes = False
    return Guard(app, GuardRules("", frozenset(), any_host=True), board.wrong)


def _text(text: str, code: HTTPStatus = HTTPStatus.OK) -> Response:
    return PlainTextResponse(text + "\n", code)


class Errors:
    """Says what no path does; a defect to the log too, but not at each request."""

    def __init__(self) -> None:
        self._said_at = -_SAY_AGAIN_S

    async def say(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            return await self.say_defect(request, error)
        response = PlainTextResponse(error.detail + "\n", error.status_code)
        response.headers.update(error.headers or {})
        return response

    async def say_defect(self, request: Request, error: Exception) -> Response:
        """Return nothing of it but that it is one."""
        now = runtime.monotonic()
        if now - self._said_at >= _SAY_AGAIN_S:
            self._said_at = now
            path = request.url.path
            _log.error("a request failed: a defect", path=path, exc_info=error)
        return _text("a defect of walstream: its log says more", HTTPStatus(500))
