"""`walstream tail`: what is in topics, readable, as it comes."""

import io
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from walstream.cli.config_file import load
from walstream.cli.options import ConfigFile, PrintSchema
from walstream.cli.output import console, echo, print_schema
from walstream.cli.tail import json_lines, screen
from walstream.cli.tail.brokers import Client, of_brokers, of_config
from walstream.cli.tail.change import Change, read
from walstream.cli.tail.filter import TailFilter, nothing_named
from walstream.cli.tail.follow import (
    Ending,
    Follower,
    Span,
)
from walstream.cli.tail.layout import Line, plain
from walstream.config.load import DEFAULT_FILES
from walstream.errors import ConfigError, WalstreamError
from walstream.kafka.advertised_listeners import Whereabouts
from walstream.kafka.topic_reader import TopicReader, TopicRecord
from walstream.telemetry import logs

_ANSWER_S: Final = 7.0
_PIPE_WIDTH: Final = 100


def tail(  # noqa: PLR0913 - each is an option of the command
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC",
            help="Names, or patterns with * and ?; none: all that the sink can reach.",
            show_default=False,
        ),
    ] = None,
    file: ConfigFile = None,
    *,
    sink: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The Kafka sink, where there are several."),
    ] = None,
    brokers: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Brokers: no configuration is read."),
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="All that is there, not from now.")
    ] = False,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="End at what is there at the start.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="End after so many.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help='Only this key: ["1"], or its one part: 1'),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only this schema.table, or table; * and ? match."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object a line.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Shorten nothing, leave nothing out.")
    ] = False,
    schema: PrintSchema = False,
) -> None:
    """Show the changes in topics as they come, or those that are there.

    Example: walstream tail 'shop.*' --from-beginning --table orders -n 20
    """
    if schema:
        print_schema(json_lines.SCHEMA)
        return
    client = _client(file, sink, brokers)
    ended = Ending(sys.stdout.fileno())
    span = Span(from_beginning=from_beginning, until_end=until_end)
    Whereabouts(client.properties, client.confined).look(_ANSWER_S)
    with TopicReader(client.properties, _ANSWER_S) as reader:
        follower = _begin(reader, topics, client, span)
        changes = _changes(follower.batches(ended), TailFilter(key, table or ()))
        _print(islice(changes, limit), _Printer(as_json=as_json, full=full))


def _print(changes: Iterable[Change], printer: "_Printer") -> None:
    try:
        for change in changes:
            printer.print(change)
    except BrokenPipeError:  # who read has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise WalstreamError(f"writing the output: {error.strerror}") from error


def _client(file: Path | None, sink: str | None, brokers: str | None) -> Client:
    if brokers is not None:
        if file or sink:
            raise ConfigError(
                "--brokers takes the place of a configuration",
                hint="leave out -c and --sink, or --brokers",
            )
        logs.configure("warning", str)
        return of_brokers(brokers)
    if file is None and not any(default.exists() for default in DEFAULT_FILES):
        raise ConfigError(
            "there is no configuration here",
            hint="name one with -c FILE, or the brokers with --brokers HOST:PORT",
        )
    config = load(file)
    logs.configure(config.log_level, config.secrets.scrub)
    return of_config(config, sink)


def _begin(
    reader: TopicReader, topics: list[str] | None, client: Client, span: Span
) -> Follower:
    wanted = topics or client.topics
    if not wanted:
        raise nothing_named(reader.topics())
    follower = Follower(reader, wanted, span, partial(echo, err=True))
    # what the configuration can reach, run will create
    follower.begin(may_wait=not topics)
    return follower


def _changes(
    batches: Iterable[list[TopicRecord]], choice: TailFilter
) -> Iterator[Change]:
    for record in chain.from_iterable(batches):
        if choice.takes_record(record):
            change = read(record)
            if choice.takes_content(change.content):
                yield change


class _Printer:
    """Writes each change at once, so that a pipe's reader never waits."""

    def __init__(self, *, as_json: bool, full: bool) -> None:
        # of what an encoding lacks nothing is lost, and JSON is UTF-8 anywhere
        encoding = "utf-8" if as_json else None
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")
        self._as_json = as_json
        self._full = full
        self._console = console()

    def print(self, change: Change) -> None:
        if self._as_json:
            text = json_lines.line(change)
        else:
            shown = screen.lines(change, self._width(), full=self._full)
            text = "\n".join(map(self._render, shown))
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def _width(self) -> int | None:
        """Ask each time: a terminal changes its size."""
        if self._console.is_terminal:
            return shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns
        return None if self._full else _PIPE_WIDTH

    def _render(self, line: Line) -> str:
        if not self._console.is_terminal:
            return plain(line)
        with self._console.capture() as captured:
            self._console.print(Text.assemble(*line), soft_wrap=True, end="")
        return captured.get()
