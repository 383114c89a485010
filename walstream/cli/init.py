"""`walstream init`: from an empty folder to a configuration, and what check thinks."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from walstream.admin.check import http as http_checks
from walstream.admin.check.run import check, refused
from walstream.admin.init import (
    DEFAULT_BROKERS,
    VARIABLE,
    InitOptions,
    InitResult,
    default_dsn,
    next_steps,
    refuse,
    unproven,
)
from walstream.admin.init import init as write_configuration
from walstream.admin.init_from import InitFromOptions
from walstream.cli.check import print_report
from walstream.cli.init_from import init_from
from walstream.cli.output import console, echo
from walstream.config import Secrets, load
from walstream.config.load import DEFAULT_FILES
from walstream.errors import ConfigError
from walstream.telemetry import logs

_NAMED = "-c"
_ALL = "all"
_ANY_DSN = "postgresql://localhost/postgres"


def init(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    *,
    dsn: Annotated[
        str,
        typer.Option(
            envvar=VARIABLE,
            metavar="DSN",
            help="PostgreSQL: postgresql://USER@HOST/DATABASE.",
        ),
    ] = "",
    brokers: Annotated[
        str,
        typer.Option(
            envvar="WALSTREAM_BROKERS",
            metavar="HOST:PORT",
            help=f"Kafka's brokers; default: {DEFAULT_BROKERS}.",
        ),
    ] = "",
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The file to write.")
    ] = DEFAULT_FILES[0],
    source: Annotated[
        str, typer.Option(metavar="NAME", help="The name of the source.")
    ] = "app",
    tables: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN", help="Tables to stream: schema.table, with * and ?."
        ),
    ] = None,
    schema: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Stream all tables of this schema."),
    ] = None,
    connector: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Translate a Debezium connector: its .properties or .json.",
        ),
    ] = None,
    worker: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --from: properties of its Connect worker."
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Allow remote servers without verified TLS."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an existing file.")
    ] = False,
) -> None:
    """Write a first walstream.toml for a database and a broker, and check it.

    Asks at a terminal for what is missing. A password goes into a separate file.
    With --from it ends with 3 if something could not be translated: its report says
    what to decide.

    Example: walstream init --dsn postgresql://app@localhost/app
    """
    logs.configure("error", Secrets().scrub)
    refuse(output, source, force=force)
    if connector is not None:
        _refuse_beside_from(context)
        init_from(
            InitFromOptions(connector, output, worker, brokers, source, force),
            lambda problems: _consent(problems, insecure=insecure),
            _print_check,
        )
        return
    if worker is not None:
        raise ConfigError("--worker is only for --from", hint="add --from FILE")
    if _is_from_environment(context, "dsn") and sys.stdin.isatty():
        typer.echo(f"PostgreSQL: from {VARIABLE}")
    dsn, brokers = _servers(dsn, brokers)
    agreed = _agreed(dsn, brokers, insecure=insecure)
    patterns = [*(tables or ()), *(f"{name}.*" for name in schema or ())]
    if not patterns and sys.stdin.isatty():
        patterns = typer.prompt(
            "Tables: schema.table with * and ?, separated by commas",
            default=_ALL,
            value_proc=_read_tables,
        )
    wishes = InitOptions(
        output,
        dsn,
        brokers,
        source,
        patterns=patterns,
        from_variable=_is_from_environment(context, "dsn"),
        insecure=agreed,
        force=force,
    )
    written = write_configuration(wishes)
    _tell(wishes, written)


def _refuse_beside_from(context: typer.Context) -> None:
    """Refuse options that say what the connector's file says."""
    for name in ("dsn", "tables", "schema"):
        given = context.get_parameter_source(name)
        if given is not None and given.name == "COMMANDLINE":
            raise ConfigError(
                f"--{name} and --from say the same: leave one out",
                hint="what the file is to say otherwise, change in it afterwards",
            )


def _is_from_environment(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "ENVIRONMENT"


def _servers(dsn: str, brokers: str) -> tuple[str, str]:
    """Ask for what is missing, if stdin is a terminal."""
    asks = sys.stdin.isatty()
    if not dsn and not asks:
        raise ConfigError(
            "which database?",
            hint=f"add --dsn postgresql://USER@HOST/DATABASE, or set {VARIABLE}",
        )
    dsn = dsn or typer.prompt("PostgreSQL", default=default_dsn(), value_proc=_read)
    if not brokers and asks:
        brokers = typer.prompt(
            "Kafka", default=DEFAULT_BROKERS, value_proc=_read_brokers
        )
    return dsn, brokers or DEFAULT_BROKERS


def _read(typed: str) -> str:
    """Take a connection string, or say what is wrong with it and ask again."""
    try:
        unproven(typed, DEFAULT_BROKERS)
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from None
    return typed


def _read_brokers(typed: str) -> str:
    try:
        unproven(_ANY_DSN, typed)
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from None
    return typed


def _read_tables(typed: str) -> list[str]:
    """Return the patterns; none means all tables."""
    patterns = [part.strip() for part in typed.split(",") if part.strip()]
    if patterns == [_ALL]:
        return []
    for pattern in patterns:
        if "." not in pattern:
            raise typer.BadParameter(
                f"{pattern!r} has no schema: write public.{pattern}"
            )
    return patterns


def _agreed(dsn: str, brokers: str, *, insecure: bool) -> bool:
    """Ask whether a server elsewhere may go unproven: never decided by itself."""
    problems = [one for part in unproven(dsn, brokers) for one in part]
    return _consent(problems, insecure=insecure)


def _consent(problems: list[str], *, insecure: bool) -> bool:
    if insecure or not problems or not sys.stdin.isatty():
        return insecure
    for problem in problems:
        echo(f"  {problem}")
    return typer.confirm("Continue without verified TLS (insecure = true)?")


def _tell(wishes: InitOptions, written: InitResult) -> None:
    """Print what was written, what check thinks of it, and what comes next."""
    out = console()
    out.print(f"{wishes.output} is written: {_tables(written)}", soft_wrap=True)
    for path in written.secrets:
        out.print(f"{path} holds its password; only you can read it", soft_wrap=True)
    out.print()
    named = wishes.output != DEFAULT_FILES[0]
    _print_check(wishes.output)
    suffix = f" {_NAMED} {shlex.quote(str(wishes.output))}" if named else ""
    out.print()
    for command in next_steps(written.topic):
        out.print(Text("  $ ", "dim").append(command + suffix, "green"), soft_wrap=True)


def _print_check(output: Path) -> None:
    """Print what check thinks of the file."""
    named = output != DEFAULT_FILES[0]
    try:
        config = load(output if named else None, os.environ)
    except ConfigError as error:
        print_report(refused(error))
    else:
        logs.configure("error", config.secrets.scrub)
        print_report(check(config, http_checks.inspect(config)))


def _tables(written: InitResult) -> str:
    if written.unseen:
        return f"its tables are a guess ({written.unseen})"
    return f"{written.tables} table{'' if written.tables == 1 else 's'} found"
