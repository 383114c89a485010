"""Logs: one line an entry on stderr, readable on a terminal, JSON elsewhere.

Every text passes the scrubber: no secret reaches a log, whatever a library says. What a
driver says below a warning does not come so far, at any level: py4j logs whole commands
to the JVM, tasks in base64 and its own key among them, and no scrubber knows a secret
in another spelling.
"""

import contextlib
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, TextIO, cast

import structlog

from walstream.telemetry import journal
from walstream.telemetry.terminal import escape, escape_lines

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_OWN: Final = ("walstream", "consumer")  # packages whose loggers may say more


class _Stderr:
    """Standard error that may be gone: a terminal that was closed, a disk that is full.

    A log line that cannot be written ends nothing.
    """

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


STDERR: Final = _Stderr()


def configure(level: str, scrub: Callable[[str], str], **fields: str) -> None:
    """Set up structlog, and standard logging for libraries; `fields` mark each line."""

    def scrubbed(_logger: object, _name: str, entry: Any) -> Any:
        return {key: plain(value, scrub) for key, value in entry.items()}

    def marked(_logger: object, _name: str, entry: Any) -> Any:
        # not by context variables: a thread begins without them
        return {**fields, **entry}

    shared: list[Any] = [
        marked,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        scrubbed,
    ]
    if sys.stderr.isatty():
        shared.append(_spelt)
        renderer: Any = structlog.dev.ConsoleRenderer()
    else:
        renderer = structlog.processors.JSONRenderer(sort_keys=False)
    if journal.is_stderr():
        renderer = _prioritised(renderer)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", STDERR)),
        cache_logger_on_first_use=False,
    )
    _bridge(_LEVELS[level])


def _spelt(_logger: object, _name: str, entry: Any) -> Any:
    """Let no text drive the terminal; only a traceback has lines of its own."""
    return {
        key: plain(value, escape_lines if key == "exception" else escape)
        for key, value in entry.items()
    }


def set_level(level: str) -> None:
    """Log from this level on; for whom `configure` set it up."""
    number = _LEVELS.get(level)
    if number is not None:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(number))
        logging.getLogger().setLevel(number)


def _prioritised(renderer: Any) -> Any:
    def render(logger: object, name: str, entry: Any) -> str:
        level = str(entry["level"])
        return journal.marked(renderer(logger, name, entry), level)

    return render


def plain(value: object, scrub: Callable[[str], str]) -> Any:
    """Make a value what JSON knows; every text within it is scrubbed."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {scrub(str(key)): plain(value[key], scrub) for key in value}
    if isinstance(value, list | tuple):
        return [plain(item, scrub) for item in value]
    return scrub(str(value))


class _Bridge(logging.Handler):
    """Passes what libraries log on to structlog."""

    def __init__(self) -> None:
        super().__init__()
        # not by their loggers' levels: a library may set its own
        self.addFilter(_lets_through)

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger()
        text = record.getMessage()
        if record.levelno >= logging.ERROR and record.name != "librdkafka":
            log.error(text, logger=record.name)
        else:  # librdkafka calls an error what it repairs by itself
            log.debug(text, logger=record.name)


def _lets_through(record: logging.LogRecord) -> bool:
    """Return whether it may be shown: of libraries only warnings and worse."""
    own = record.name.partition(".")[0] in _OWN
    return own or record.levelno >= logging.WARNING


def _bridge(level: int) -> None:
    logging.basicConfig(handlers=[_Bridge()], level=level, force=True)
