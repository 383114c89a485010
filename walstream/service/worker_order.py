"""Order of a supervisor to a worker: a line of JSON, then a word a line."""

from dataclasses import dataclass

from walstream.config.run_options import Options
from walstream.telemetry.json_codec import dumps, loads, read


@dataclass(frozen=True, slots=True)
class StartOrder:
    """The first line."""

    parent: int  # the supervisor's process
    source: str
    config: str  # as `Config.to_json` gives it
    log_level: str
    options: Options


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """Arguments of the words `backfill` and `poll`."""

    number: int  # by which the worker answers
    tables: tuple[str, ...] = ()  # to backfill
    replace: bool = False  # their readers hear a Truncate first
    where: str = ""  # SQL of the rows to read; "": all
    find: bool = False  # the tables are names or patterns that were not looked up


def start_line(order: StartOrder) -> str:
    """Return the first line."""
    return dumps(order)


def start_of(line: str) -> StartOrder:
    """Return what the first line says."""
    return read(StartOrder, loads(line))


def request_line(word: str, request: WorkerRequest) -> str:
    """Return the line of a request."""
    return f"{word} {dumps(request)}"


def request_of(text: str) -> WorkerRequest:
    """Return what comes behind the word."""
    return read(WorkerRequest, loads(text))
