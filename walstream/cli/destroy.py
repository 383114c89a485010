"""`walstream destroy`: gives a source up, and says first what is lost."""

import sys
from collections.abc import Iterator

import typer

from walstream.admin.destroy import destroy as destroy_source
from walstream.admin.known_source import UNCLAIMED
from walstream.admin.teardown import Teardown
from walstream.cli.config_file import load
from walstream.cli.options import (
    AdoptSlot,
    ConfigFile,
    SourceArgument,
    SourceOption,
    Yes,
    source_demanded,
)
from walstream.cli.output import echo, print_wrapped, size
from walstream.errors import ConfigError
from walstream.lsn import show
from walstream.telemetry import logs

_LISTED = 5


def destroy(
    source: SourceArgument = "",
    file: ConfigFile = None,
    *,
    named: SourceOption = "",
    adopt_slot: AdoptSlot = False,
    yes: Yes = False,
) -> None:
    """Drop the slot, the publications and the state of a source that you remove.

    Prints first what is lost and what stays, and asks for the source's name. Refuses
    while walstream runs. A slot that the state does not know stays, unless --adopt-slot
    says that it is the source's. Topics, consumers' tables and files stay.

    Example: walstream destroy app
    """
    config = load(file)
    logs.configure(config.log_level, config.secrets.scrub)
    source = source_demanded(config, source, named)

    def consent(planned: Teardown) -> bool:
        for line in _plan(planned):
            print_wrapped(line)
        if yes:
            return True
        if not sys.stdin.isatty():
            raise ConfigError("only a terminal can confirm", hint="add --yes")
        typed: str = typer.prompt("Type the source's name to destroy it")
        return typed.strip() == source

    done = destroy_source(config, source, consent, adopt=adopt_slot)
    if done is None:
        typer.echo("nothing was changed")
        return
    if done.empty and done.stays:
        echo(f"source {source!r} has no state, and nothing is known to be its own")
    elif done.empty:
        echo(f"source {source!r} has no slot, no publication and no state")
    else:
        echo(f"source {source!r} is destroyed")
    for line in _rest(done):
        echo(line)


def _plan(planned: Teardown) -> Iterator[str]:
    """Yield what is dropped, and what that means."""
    if planned.interrupted:
        yield (
            f"Source {planned.source!r} was destroyed, but not all of its state was"
            " deleted. This deletes the rest, and asks no server:"
        )
        yield f"  {planned.remains}"
        return
    where = f" of {planned.server}" if planned.server else ""
    yield f"Source {planned.source!r}{where} is destroyed. This drops:"
    if planned.slot is not None:
        held = size(planned.slot.held_bytes)
        yield f"  slot {planned.slot.name}, which holds {held} of WAL"
    for copy in planned.copies:
        yield f"  slot {copy}, of a detached sink"
    for name in planned.publications:
        yield f"  publication {name}"
    if planned.folder is not None:
        is_link = planned.folder.is_symlink()
        target = f", a link to {planned.folder.resolve()}" if is_link else ""
        yield f"  the state in {planned.folder}{target}"
    if planned.remains is not None:
        yield f"  the rest of an earlier state in {planned.remains}"
    if planned.slot is not None or planned.position is not None:
        at = f" after {show(planned.position)}" if planned.position else ""
        yield (
            f"Changes{at} that are not in Kafka yet will not be sent. This cannot be"
            " undone: a new start begins with a backfill."
        )


def _rest(done: Teardown) -> Iterator[str]:
    """Yield what stays, with what drops it."""
    for kept in done.stays:
        yield f"{kept.what} stays: {kept.why}"
        if kept.sql:
            yield f"    SQL> {kept.sql}"
        if kept.why == UNCLAIMED:
            yield "    if it is the source's own, destroy it with --adopt-slot"
    topics = ", ".join(done.topics[:_LISTED])
    more = len(done.topics) - _LISTED
    if more > 0:
        topics += f" and {more} more"
    named = f" ({topics})" if topics else ""
    yield f"What stays: topics{named}, consumers' tables, the configuration's files"
