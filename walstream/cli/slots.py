"""`walstream slots`: lists the servers' replication slots, and drops one."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from walstream.admin.slots import (
    Loss,
    ServerSlots,
    Slots,
    Where,
    look,
    repair_of,
)
from walstream.admin.slots import drop as drop_slot
from walstream.cli import completion, completion_servers
from walstream.cli.options import AsJson, ConfigFile, PrintSchema, Yes
from walstream.cli.output import (
    console,
    duration,
    echo,
    print_findings,
    print_json,
    print_schema,
    print_wrapped,
    size,
    table,
)
from walstream.cli.verb_command import VerbCommand, VerbGroup
from walstream.config import Config, load
from walstream.config.load import has_default_file
from walstream.errors import ConfigError
from walstream.lsn import show
from walstream.postgres.slot_inventory import SlotFacts
from walstream.telemetry import logs
from walstream.telemetry.terminal import escape, indented

app = typer.Typer(cls=VerbGroup)

Source = Annotated[
    str,
    typer.Option(
        "--source",
        metavar="NAME",
        help="Only the server of this source.",
        autocompletion=completion.sources,
    ),
]
Dsn = Annotated[
    str,
    typer.Option(
        "--dsn",
        envvar="WALSTREAM_DSN",
        show_envvar=True,
        metavar="DSN",
        help="Only this server; needs no configuration.",
    ),
]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The options that both forms of the command take."""

    file: Path | None
    source: str
    dsn: str

    @classmethod
    def of(
        cls, context: typer.Context, file: Path | None, source: str, dsn: str
    ) -> "_Asked":
        given = context.get_parameter_source("dsn")
        configured = file is not None or has_default_file()
        if given is not None and given.name == "ENVIRONMENT" and configured:
            dsn = ""  # it is there for the configuration
        before = context.parent.obj if context.parent else None
        if isinstance(before, _Asked):  # walstream slots -c FILE drop NAME
            file, source = file or before.file, source or before.source
            dsn = dsn or before.dsn
        return cls(file, source, dsn)

    def where(self) -> Where:
        """Find the servers. With --dsn a broken configuration is told of, no more."""
        if self.source and self.dsn:
            raise ConfigError("--source and --dsn name two servers", hint="give one")
        config = None
        alone = self.dsn and not has_default_file()
        if self.file or not alone:
            try:
                config = load(self.file)
            except ConfigError as error:
                if not self.dsn:
                    raise
                echo(indented(f"whose slots these are is not known: {error}"), err=True)
        return Where(config, self.dsn, self.source)


@app.callback(invoke_without_command=True)
def slots(  # noqa: PLR0913 - a command's options
    context: typer.Context,
    file: ConfigFile = None,
    source: Source = "",
    dsn: Dsn = "",
    *,
    as_json: AsJson = False,
    schema: PrintSchema = False,
) -> None:
    """List the servers' replication slots: held WAL, reader and owner.

    Example: walstream slots --dsn postgresql://postgres@localhost/app
    """
    if schema:
        print_schema(Slots)
        return
    asked = _Asked.of(context, file, source, dsn)
    if context.invoked_subcommand is not None:
        context.obj = asked
        return
    where = asked.where()
    found = look(where)
    if as_json:
        print_json(found)
    else:
        _print(console(), found, where.config)
    codes = [one.problem.exit_code for one in found.servers if one.problem]
    raise typer.Exit(max(codes, default=0))


def _print(out: Console, found: Slots, config: Config | None) -> None:
    if not found.servers:
        out.print("no postgres source is configured")
    for index, server in enumerate(found.servers):
        if index:
            out.print()
        if server.problem is not None:
            print_findings(
                out,
                [server.problem],
                config.command if config else str,
            )
            continue
        out.print(_headline(server), style="bold")
        if server.slots:
            _print_slots(out, server.slots, found.at)


def _headline(server: ServerSlots) -> str:
    name = _name(server)
    if not server.slots:
        return f"{name} has no slots"
    held = size(max(slot.held_bytes for slot in server.slots))
    count = len(server.slots)
    return f"{name}: {count} slot{'s' * (count > 1)} hold{'s' * (count == 1)} {held}"


def _name(server: ServerSlots) -> str:
    name = f"PostgreSQL {server.version}"
    if server.standby:
        name += " (a standby)"
    if server.sources:
        plural = "s" * (len(server.sources) > 1)
        name += f" of source{plural} {', '.join(server.sources)}"
    return name


def _print_slots(out: Console, found: list[SlotFacts], at: datetime) -> None:
    numbers = ("holds", "behind")
    made = table("slot", *numbers, "source", "what it is", right=numbers)
    made.columns[0].overflow = "fold"  # a name is there to be copied
    for slot in found:
        made.add_row(
            slot.name,
            size(slot.held_bytes),
            "-" if slot.lag_bytes is None else size(slot.lag_bytes),
            ", ".join(slot.sources) or "-",
            Text("\n").join(_lines(slot, at)),
        )
    out.print(made)


def _lines(slot: SlotFacts, at: datetime) -> Iterator[Text]:
    flags = [
        name
        for name in ("temporary", "failover", "synced")
        if getattr(slot, name) is True
    ]
    yield Text(", ".join([slot.what, *flags]))
    yield Text(_read_by(slot, at))
    if slot.invalidation:
        text = f"WAL {slot.wal_status}: can no longer be read, {slot.invalidation}"
        yield Text(text, style="bold red")
    elif slot.safe_wal_size is not None:
        left = size(slot.safe_wal_size)
        yield Text(f"WAL {slot.wal_status}, lost after {left} more")
    elif slot.wal_status:
        yield Text(f"WAL {slot.wal_status}")


def _read_by(slot: SlotFacts, at: datetime) -> str:
    reader = slot.reader
    if reader is not None:
        who = escape(f"{reader.application or 'no name'} of {reader.user or '?'}")
        place = f" at {reader.address}" if reader.address else ""
        return f"read by {who}{place}, pid {reader.pid}"
    if slot.inactive_since is None:
        return "nobody reads it"
    since = duration(max(0.0, (at - slot.inactive_since).total_seconds()))
    return f"nobody reads it, for {since}"


@app.command(cls=VerbCommand)
def drop(  # noqa: PLR0913 - a command's options
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The slot's name.",
            autocompletion=completion_servers.slots,
        ),
    ],
    file: ConfigFile = None,
    source: Source = "",
    dsn: Dsn = "",
    *,
    yes: Yes = False,
) -> None:
    """Drop a slot that nobody reads, logical or physical.

    Prints first what is lost, and asks for the slot's name at a terminal.

    Example: walstream slots drop old_debezium
    """
    where = _Asked.of(context, file, source, dsn).where()
    config = where.config
    if config is not None:
        logs.configure(config.log_level, config.secrets.scrub)

    def consent(loss: Loss) -> bool:
        for line in _losses(loss):
            print_wrapped(line)
        if yes:
            return True
        if not sys.stdin.isatty():
            raise ConfigError("only a terminal can confirm", hint="add --yes")
        typed: str = typer.prompt("Type the slot's name to drop it")
        return typed.strip() == name

    loss = drop_slot(where, name, consent)
    if loss is None:
        typer.echo("nothing was changed")
        return
    echo(_done(loss, config))


def _losses(loss: Loss) -> Iterator[str]:
    slot = loss.slot
    read = (
        _read_by(slot, datetime.now(slot.inactive_since.tzinfo))
        if (slot.inactive_since)
        else "nobody reads it"
    )
    yield f"Slot {slot.name!r} ({slot.what}) of {_name(loss.server)}:"
    yield f"  it holds {size(slot.held_bytes)} of WAL; {read}"
    if slot.invalidation:
        yield f"  it can no longer be read: {slot.invalidation}"
    else:
        yield "  its reader will miss everything that was written since then"
    for dependent in loss.dependents:
        if dependent.problem:
            yield f"  source {dependent.source} may depend on it: {dependent.problem}"
            continue
        if dependent.sink:
            yield (
                f"  sink {dependent.sink} of source {dependent.source}, which is "
                "detached, streams from it, and will lack changes for good; the other "
                "sinks stream on"
            )
            continue
        at = f" ({show(dependent.resume)})" if dependent.resume else ""
        yield (
            f"  the position of source {dependent.source}{at} depends on it: source"
            f" {dependent.source} will stop with exit code 3 until walstream positions"
            f" reset {dependent.source}"
        )


def _done(loss: Loss, config: Config | None) -> str:
    said = f"slot {loss.slot.name!r} is dropped"
    if loss.slot.held_bytes:
        said += f"; PostgreSQL may remove {size(loss.slot.held_bytes)} of WAL"
    command = config.command if config else str
    for repair in repair_of(loss.dependents):
        said += f"; now: {command(repair.command) if repair.command else repair.then}"
    return said
