"""`walstream check`: what is wrong, before `run` meets it."""

from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from walstream.admin.check import http as http_checks
from walstream.admin.check.run import Report, check, refused
from walstream.cli.config_file import load
from walstream.cli.options import ConfigFile, PrintSchema
from walstream.cli.output import console, print_findings, print_json, print_schema
from walstream.config import Secrets
from walstream.errors import ConfigError, Transient
from walstream.finding import Finding, Severity
from walstream.telemetry import logs
from walstream.telemetry.terminal import escape

_WAITS: Final = Transient.exit_code
_MEANINGS: Final = {
    1: "a defect",
    2: "usage or configuration",
    3: "a gap or another history",
    4: "a right is missing",
}


def check_command(
    file: ConfigFile = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    schema: PrintSchema = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print only what would stop run.")
    ] = False,
) -> None:
    """Report what would stop run, and warnings, each with the command that fixes it.

    Example: walstream check -c walstream.toml
    """
    if schema:
        print_schema(Report)
        return
    logs.configure("error", Secrets().scrub)
    try:
        config = load(file)
    except ConfigError as error:
        report = refused(error)
    else:
        logs.configure("error", config.secrets.scrub)
        report = check(config, http_checks.inspect(config))
    if as_json:
        print_json(report)
    else:
        print_report(report, only=Severity.STOP if quiet else None)
    raise typer.Exit(report.exit_code)


def print_report(report: Report, only: Severity | None = None) -> None:
    """Print what was found, by source, and what `run` would do."""
    out = console()
    _print_part(out, report.findings, only)
    for source in report.sources:
        out.print(
            Text(f"{source.name}  ", "bold").append(
                escape(source.server), "not bold dim"
            )
        )
        if not _print_part(out, source.findings, only):
            what = "nothing found" if only is None else "nothing stops it"
            out.print(Text(f"  ✓ {what}\n", style="green"))
    _print_verdict(out, report)


def _print_part(out: Console, findings: list[Finding], only: Severity | None) -> bool:
    shown = [found for found in findings if only in {None, found.severity}]
    print_findings(out, shown, lambda command: command)
    if shown:
        out.print()
    return bool(shown)


def _print_verdict(out: Console, report: Report) -> None:
    findings = [*report.findings, *(f for s in report.sources for f in s.findings)]
    counts = ", ".join(
        f"{count} {severity}{'s' * (count > 1)}"
        for severity in Severity
        if (count := sum(found.severity is severity for found in findings))
    )
    style = "bold green" if report.ok else "bold red"
    out.print(Text(verdict(report), style).append(f"  ({counts})" if counts else ""))


def verdict(report: Report) -> str:
    """Return in a line what `run` would do."""
    if report.ok and report.instance:
        return (
            f"walstream runs here, process {report.instance}: nothing would stop its"
            " next start"
        )
    if report.ok:
        return "run would start"
    if report.exit_code == _WAITS:
        return f"run would wait and try again ({_WAITS})"
    return f"run would end with {report.exit_code}: {_MEANINGS[report.exit_code]}"
