"""`walstream run`: stream, or poll, every source until told to stop."""

from typing import Annotated

import typer

from walstream import config as configuration
from walstream.cli.config_file import Again, give_root_up
from walstream.cli.launch import run as run_all
from walstream.cli.options import ConfigFile
from walstream.cli.run_end import RunEnd
from walstream.config.run_options import Options
from walstream.telemetry import logs


def run(  # noqa: PLR0913 - an option each
    file: ConfigFile = None,
    *,
    verbose: Annotated[
        int,
        typer.Option(
            "-v",
            "--verbose",
            count=True,
            show_default=False,
            help="Log each confirmed position with counts by table.",
        ),
    ] = 0,
    adopt_slot: Annotated[
        bool,
        typer.Option(
            "--adopt-slot",
            help="Stream from an existing slot that the state does not know.",
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="End the session that holds the slot. If that instance is frozen, not"
            " dead, it may still send what it had in flight.",
        ),
    ] = False,
    accept_partitions: Annotated[
        bool,
        typer.Option(
            "--accept-partitions",
            help="Continue although the number of partitions of a topic changed.",
        ),
    ] = False,
    accept_timeline: Annotated[
        bool,
        typer.Option(
            "--accept-timeline",
            help="Continue after a failover: confirms that Kafka has no change that the"
            " new primary lacks.",
        ),
    ] = False,
    until_lsn: Annotated[
        str,
        typer.Option(
            "--until-lsn",
            metavar="LSN|now",
            help="End with 0 when all that committed below LSN, or before now, is"
            " delivered and confirmed; with 5 when it is stopped before.",
        ),
    ] = "",
) -> None:
    """Stream all sources into Kafka until Ctrl-C or SIGTERM.

    The first signal drains: what was read is delivered and confirmed. A second one ends
    at once. SIGHUP reloads the configuration, as walstream reload does. Sources of
    kind = "sql" are polled.

    Example: walstream run -c walstream.toml

    Example: walstream run --until-lsn now
    """
    written = configuration.WrittenConfig.read(file)
    overrides = {"log_level": "debug"} if verbose else {}
    end = RunEnd(until_lsn)
    reader = Again(written, overrides, end.check)
    config = reader.references()
    give_root_up(config, file)
    logs.configure(config.log_level, config.secrets.scrub)
    options = Options(
        until_lsn=end.lsn,
        adopt_slot=adopt_slot,
        take_over=take_over,
        accept_partitions=accept_partitions,
        accept_timeline=accept_timeline,
    )
    raise typer.Exit(run_all(config, options, reader))
