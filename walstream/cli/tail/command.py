"""`walstream tail`: what is in topics, readable, as it comes."""

import os
import sys
from collections.abc import Iterable
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Final

import typer

from walstream.cli import completion, completion_servers, moment
from walstream.cli.config_file import load
from walstream.cli.options import ConfigFile, PrintSchema
from walstream.cli.output import echo, print_schema
from walstream.cli.tail import json_lines
from walstream.cli.tail.brokers import Client, of_brokers, of_config
from walstream.cli.tail.change import Change, read
from walstream.cli.tail.filter import TailFilter, nothing_named
from walstream.cli.tail.follow import (
    Ending,
    Follower,
    Span,
)
from walstream.cli.tail.last import LastChanges
from walstream.cli.tail.printer import Printer
from walstream.cli.tail.schema_records import SchemaRecords
from walstream.cli.tail.template import Template
from walstream.config.load import has_default_file
from walstream.config.registry import Registry
from walstream.errors import ConfigError, WalstreamError
from walstream.kafka.advertised_listeners import Whereabouts
from walstream.kafka.topic_reader import TopicReader, TopicRecord
from walstream.telemetry import logs

_ANSWER_S: Final = 7.0


def tail(  # noqa: PLR0913 - each is an option of the command
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC",
            help="Names, or patterns with * and ?. Default: all topics of the sink.",
            show_default=False,
            autocompletion=completion_servers.topics,
        ),
    ] = None,
    file: ConfigFile = None,
    *,
    sink: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The Kafka sink, if there are several.",
            autocompletion=completion.sinks,
        ),
    ] = None,
    brokers: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The brokers; needs no configuration."),
    ] = None,
    registry: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The registry of records' schemas. Default: the sink's.",
        ),
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Begin with the oldest record.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Begin at a time, which is UTC if it names no offset:"
            ' 2026-11-21T12:00:00Z, "2 hours ago", -2h. Waits for a future time.',
        ),
    ] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="End after the existing records.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=1,
            metavar="NUMBER",
            help="Show the last NUMBER changes and end; with --from-beginning or"
            " --from, the first ones from there.",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help='Only records with this key: ["1"], or 1.'),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this table, with or without its schema; * and ? match.",
            autocompletion=completion_servers.tables,
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--format",
            metavar="FORMAT",
            help=r"Print records as kcat does: '%t %p %o %k %v %T %h\n' are topic,"
            " partition, offset, key, value, time and headers.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Print values in full.")] = False,
    schema: PrintSchema = False,
) -> None:
    r"""Show the changes in topics, as they arrive or from the beginning.

    Example: walstream tail 'shop.*' --table orders -n 20

    Example: walstream tail shop.orders --from "2 hours ago" -f '%k %v\n'
    """
    if schema:
        print_schema(json_lines.Line)
        return
    span = _span(
        from_beginning=from_beginning, since=since, until_end=until_end, limit=limit
    )
    form = None if template is None else Template(template)
    if form is not None and (as_json or full):
        raise ConfigError("--format takes the place of --json and --full")
    client = _client(file, sink, brokers)
    ended = Ending(sys.stdout.fileno())
    Whereabouts(client.properties, client.confined).look(_ANSWER_S)
    with TopicReader(client.properties, _ANSWER_S) as reader:
        follower = _begin(reader, topics, client, span)
        schemas = _schemas(registry, client)
        pick = partial(_pick, TailFilter(key, table or ()), schemas)
        changes: Iterable[Change]
        if span.last is not None:
            changes = LastChanges(reader, follower.bounds, span.last).read(pick, ended)
        else:
            records = chain.from_iterable(follower.batches(ended))
            changes = islice(filter(None, map(pick, records)), limit)
        _print(changes, Printer(as_json=as_json, full=full, template=form))


def _span(
    *, from_beginning: bool, since: str | None, until_end: bool, limit: int | None
) -> Span:
    """Return what is to be read; a number alone means the last ones."""
    if since is None:
        last = None if from_beginning else limit
        return Span(from_beginning=from_beginning, until_end=until_end, last=last)
    if from_beginning:
        raise ConfigError("--from and --from-beginning exclude each other")
    try:
        time = moment.parse(since)
    except ValueError:
        raise ConfigError(
            f"--from: {since!r} is not a time", hint=f"write {moment.FORMS}"
        ) from None
    return Span(since=time, until_end=until_end)


def _print(changes: Iterable[Change], printer: Printer) -> None:
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
    if file is None and not has_default_file():
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


def _schemas(url: str | None, client: Client) -> SchemaRecords:
    """Return what reads records by a registry's schemas, where there is one."""
    told = client.registry if url is None else Registry(url=url)
    tell = partial(echo, err=True)
    if told is None:
        return SchemaRecords(None, tell)
    # few topics have schemas there, and its libraries take a second
    from walstream.kafka.registry.client import RegistryClient  # noqa: PLC0415

    return SchemaRecords(RegistryClient(told).schema_of, tell)


def _pick(
    choice: TailFilter, schemas: SchemaRecords, record: TopicRecord
) -> Change | None:
    """Return the change of a record, where it is wanted."""
    record, named = schemas.plain(record)
    if not choice.takes_record(record):
        return None
    change = read(record, named)
    return change if choice.takes_content(change.content) else None
