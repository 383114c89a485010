"""`walstream run`: stream, or poll, every source until told to stop."""

from typing import Annotated

import typer

from walstream import config as configuration
from walstream.cli.config_file import Again, give_root_up
from walstream.cli.launch import run as run_all
from walstream.cli.options import ConfigFile
from walstream.config.run_options import Options
from walstream.telemetry import logs


def run(  # noqa: PLR0913 - an option each
    file: ConfigFile = None,
    *,
    verbose: Annotated[
        int, typer.Option("-v", "--verbose", count=True, help="Log more.")
    ] = 0,
    adopt_slot: Annotated[
        bool,
        typer.Option(
            "--adopt-slot", help="Stream from a slot of which the state knows nothing."
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="End the session that holds the slot. An instance that is frozen, not"
            " dead, may still send what it had under way when it thaws.",
        ),
    ] = False,
    accept_partitions: Annotated[
        bool,
        typer.Option(
            "--accept-partitions", help="Go on with topics that have other partitions."
        ),
    ] = False,
    accept_timeline: Annotated[
        bool,
        typer.Option(
            "--accept-timeline",
            help="After a failover: Kafka has no change that the new primary lacks.",
        ),
    ] = False,
) -> None:
    """Stream PostgreSQL into Kafka until SIGTERM, which drains; twice ends at once.

    SIGHUP reads the configuration again, as walstream reload does.
    Sources of kind = "sql" are polled: tables of other databases that only grow.

    Example: walstream run -c walstream.toml
    """
    written = configuration.WrittenConfig.read(file)
    overrides = {"log_level": "debug"} if verbose else {}
    reader = Again(written, overrides)
    config = reader.references()
    give_root_up(config, file)
    logs.configure(config.log_level, config.secrets.scrub)
    options = Options(
        adopt_slot=adopt_slot,
        take_over=take_over,
        accept_partitions=accept_partitions,
        accept_timeline=accept_timeline,
    )
    raise typer.Exit(run_all(config, options, reader))
