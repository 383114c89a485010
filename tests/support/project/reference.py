"""docs/reference.md, made from the code: `make reference` writes it.

Keys come from the configuration's model, commands from the command line itself, metrics
from the catalog, exit codes from the errors. A test compares the page with this.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import typer

from tests.support.project.own_coverage import ROOT
from walstream.cli.main import app
from walstream.config import schema
from walstream.errors import WalstreamError
from walstream.service.http.catalog import METRICS

PAGE: Final = ROOT / "docs" / "reference.md"
# each section of docs/configuration.md, and its model
SECTIONS: Final = {
    "Top level": "Config",
    "`[http]`": "Http",
    '`[sources.NAME]`, kind `"postgres"`': "PostgresSource",
    '`[sources.NAME]`, kind `"sql"`': "SqlSource",
    "`[sources.NAME.tables.TABLE]`, of a sql source": "PolledTable",
    '`[sources.NAME]`, kind `"kafka"`': "KafkaSource",
    "`[sources.NAME]`, a kind that a package adds": "PackageSource",
    '`[sinks.NAME]`, kind `"kafka"`': "KafkaSinkConfig",
    '`[sinks.NAME]`, kind `"log"`': "LogSink",
    '`[sinks.NAME]`, kind `"discard"`': "DiscardSink",
    "`[sinks.NAME]`, a kind that a package adds": "PackageSink",
    '`[[sinks.NAME.handlers]]`, kind `"passthrough"`': "PassthroughHandler",
    '`[[sinks.NAME.handlers]]`, kind `"drop_columns"`': "DropColumnsHandler",
    '`[[sinks.NAME.handlers]]`, kind `"rename_columns"`': "RenameColumnsHandler",
    '`[[sinks.NAME.handlers]]`, kind `"mask"`': "MaskHandler",
    '`[[sinks.NAME.handlers]]`, kind `"filter"`': "FilterHandler",
    '`[[sinks.NAME.handlers]]`, kind `"outbox"`': "OutboxHandler",
    "`[[sinks.NAME.handlers]]`, a kind that a package adds": "PackageHandler",
    "`[sinks.NAME.debezium]`": "Debezium",
    "`[sinks.NAME.messages]`": "Messages",
    "`[sinks.NAME.oauth]`, and of a kafka source": "OAuth",
    "`[sinks.NAME.registry]`": "Registry",
    "`[sinks.NAME.topics.TABLE]`": "MappedTopic",
    "`[spark]`": "Spark",
}
_HEAD: Final = """\
# Reference

`make reference` writes this page from the code; a test fails if it is out of date.
How things belong together: [configuration.md](configuration.md),
[metrics.md](metrics.md), [operations.md](operations.md), [consumer.md](consumer.md).
"""
_TYPERS: Final = {"--install-completion", "--show-completion"}
_SHELLS: Final = """\
`-h` and `--help` of each command print the same. `walstream --install-completion`
installs completion for the shell, `--show-completion` prints it.
"""
_ENDS: Final = """\
The kind is the label of `walstream_errors_total`. A wrong command line is 2. `run` ends
with the highest code of its sources, and retries instead of ending with 5; only a run
that is stopped before `--until-lsn` ends with 5. `check` ends with the code that `run`
would end with, or 5 if `run` would wait; `status` with that of the worst source.
"""
_CLEAN: Final = (
    "Nothing is wrong; also after a drain, even if `shutdown_timeout` cut it short."
)
# what a process ends with that is no error of ours: who, and why
_OTHERS: Final = (
    ("130", "Ctrl-C ended a command that does not drain, or one that asks a question."),
    ("128 + n", "Signal n ended a command that does not drain: 143 is SIGTERM."),
)


def model() -> dict[str, dict[str, Any]]:
    """Give the fields of every section, by its model's name."""
    described = schema()
    sections = {**described["$defs"], "Config": described}
    return {name: section["properties"] for name, section in sections.items()}


def page() -> str:
    """Write the whole page."""
    parts = (
        ("Commands", _SHELLS, *_commands()),
        ("Exit codes", *_exit_codes()),
        ("Configuration", *_keys()),
        ("Metrics", *_metrics()),
    )
    written = [_HEAD]
    for title, *texts in parts:
        written += [f"## {title}\n", *texts]
    return "\n".join(written)


def _commands() -> Iterator[str]:
    for path, command in walk(typer.main.get_command(app)):
        if path and not _runs(command):
            continue
        yield f"### `{' '.join(('walstream', *path))}`\n"
        yield _described(command.help) + "\n"
        rows = [_row(one) for one in command.params if not _is_left_out(one)]
        yield _table(("argument or option", "default", "what it does"), rows)


def walk(
    command: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give each command below one, and itself, with its words."""
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from walk(child, (*path, name))


def _runs(command: Any) -> bool:
    inner = getattr(command, "commands", {})
    return not inner or bool(getattr(command, "invoke_without_command", False))


def _is_left_out(parameter: Any) -> bool:
    hidden = bool(getattr(parameter, "hidden", False))
    return hidden or not _TYPERS.isdisjoint(parameter.opts)


def _described(text: str) -> str:
    """Show its examples as code; the rest is prose already."""
    prose, *examples = (" ".join(part.split()) for part in text.split("Example: "))
    code = [f"    {example}" for example in examples]
    return "\n".join([prose, "", *code] if code else [prose])


def _row(parameter: Any) -> tuple[str, str, str]:
    word = parameter.metavar or parameter.name.upper()
    if parameter.param_type_name == "argument":
        shown = f"`{word}`" if parameter.required else f"`[{word}]`"
    else:
        names = ", ".join(sorted(parameter.opts, key=len))
        plain = parameter.is_flag or parameter.count
        shown = f"`{names}`" if plain else f"`{names} {word}`"
        shown += " (repeatable)" if parameter.multiple else ""
    help_text = parameter.help
    if parameter.envvar:
        help_text += f" Or `{parameter.envvar}`."
    return shown, _default(parameter), help_text


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    default = parameter.default
    if not default or callable(default):
        return ""
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def exit_codes() -> dict[int, list[type[WalstreamError]]]:
    """Group the errors by what a process ends with."""
    grouped: dict[int, list[type[WalstreamError]]] = {}
    for kind in _tree(WalstreamError):
        grouped.setdefault(kind.exit_code, []).append(kind)
    return dict(sorted(grouped.items()))


def _tree(kind: type[WalstreamError]) -> Iterator[type[WalstreamError]]:
    """Give an error and those below it, of walstream itself."""
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == WalstreamError.__module__:
            yield from _tree(child)


def _exit_codes() -> Iterator[str]:
    rows = [("0", "", _CLEAN)]
    for code, (first, *leaves) in exit_codes().items():
        meaning = [_first_line(first)]
        meaning += [f"`{leaf.__name__}`: {_first_line(leaf)}" for leaf in leaves]
        rows.append((str(code), first.kind, " ".join(meaning)))
    rows += [(code, "", meaning) for code, meaning in _OTHERS]
    yield _table(("code", "kind", "meaning"), rows)
    yield _ENDS


def _first_line(kind: type[WalstreamError]) -> str:
    return (kind.__doc__ or "").splitlines()[0]


def _keys() -> Iterator[str]:
    fields = model()
    rows = [
        (
            f"[{heading}](configuration.md#{anchor(heading)})",
            ", ".join(f"`{key}`" for key in fields[name]),
        )
        for heading, name in SECTIONS.items()
    ]
    yield "The links lead to defaults and meanings.\n"
    yield _table(("section", "keys"), rows)


def anchor(heading: str) -> str:
    """Name a heading as GitHub's links do."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _metrics() -> Iterator[str]:
    yield "Units and meanings: [metrics.md](metrics.md).\n"
    rows = [
        (f"`{one.name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels))
        for one in METRICS.values()
    ]
    yield _table(("metric", "type", "labels"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        cells = (cell.replace("|", "\\|") for cell in row)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    Path(PAGE).write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE} is written\n")


if __name__ == "__main__":
    main()
