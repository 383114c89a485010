"""Routes of HTTP. Each answers from the board: it asks no server and no worker."""

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
from walstream.service.http.backfill import BackfillPost
from walstream.service.http.board import Board, Truth
from walstream.service.http.guard import (
    BODY_PATH,
    Guard,
    GuardRules,
    is_cross_site,
)
from walstream.service.http.series import ChartSpan
from walstream.service.http.text import stats_lines, status_lines
from walstream.status.model import adapter
from walstream.telemetry import runtime

_JSON = "application/json"
_SAY_AGAIN_S = 60.0
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of all paths."""

    board: Board
    set_debug: Callable[[bool], str]
    written: exposition.CachedMetrics

    async def page(self, request: Request) -> Response:
        span = ChartSpan.of(request.query_params.get("span", ""))
        history = page.History(self.board.series, self.board.log.events, span)
        html = page.render(self._truth(), self.board.config, history)
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
            # not by GET, which a browser sends for an image in any site's page
            return _text("POST /debug/on or /debug/off", HTTPStatus.BAD_REQUEST)
        if is_cross_site(request.headers):
            text = "Requests from pages of other sites are refused."
            return _text(text, HTTPStatus.FORBIDDEN)
        if not self.board.config.http.token:  # any user of this machine may ask
            text = f"[http] has no token: use walstream debug {what}"
            return _text(text, HTTPStatus.FORBIDDEN)
        level = self.set_debug(what == "on")
        return _text(f"every process logs from level {level} on")

    def _truth(self) -> Truth:
        return _known(self.board)


@dataclass(frozen=True, slots=True)
class Probes:
    """The answers of two paths to requests without a token."""

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
            Route(BODY_PATH, BackfillPost(board).__call__, methods=any_method),
            Route("/debug", answers.debug, methods=any_method),
            Route("/debug/{what:path}", answers.debug, methods=any_method),
        ],
        exception_handlers={HTTPException: errors.say, Exception: errors.say_defect},
    )
    app.router.redirect_slashes = False
    return Guard(app, GuardRules.of(board.config.http), board.wrong)


def make_probes(board: Board) -> ASGIApp:
    """Make the application that answers probes alone, for any client and Host."""
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
    """Answers of failed requests; defects go to the log, not at each request."""

    def __init__(self) -> None:
        self._said_at = -_SAY_AGAIN_S

    async def say(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            return await self.say_defect(request, error)
        response = PlainTextResponse(error.detail + "\n", error.status_code)
        response.headers.update(error.headers or {})
        return response

    async def say_defect(self, request: Request, error: Exception) -> Response:
        """Return that there is a defect, and nothing of it."""
        now = runtime.monotonic()
        if now - self._said_at >= _SAY_AGAIN_S:
            self._said_at = now
            path = request.url.path
            _log.error("a request failed: a defect", path=path, exc_info=error)
        return _text("walstream has a defect: the log has the details", HTTPStatus(500))
