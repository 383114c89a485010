"""Every verb says what it does, with an example; docs/verbs.md names it."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.support.programs.verb import Terminal
from tests.support.project.own_coverage import ROOT
from walstream.cli.main import app


def verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Walk down to what can be run."""
    inner = getattr(command, "commands", {})
    if not inner or getattr(command, "invoke_without_command", False):
        yield path
    for name, child in inner.items():
        yield from verbs(child, (*path, name))


COMMANDS = typer.main.get_command(app)
VERBS = [path for path in verbs(COMMANDS) if path]


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_help_has_an_example_and_fits(path: tuple[str, ...]) -> None:
    environment = {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"}
    shown = CliRunner().invoke(app, [*path, "--help"], env=environment)
    assert shown.exit_code == 0
    assert f"Example: walstream {' '.join(path)}" in " ".join(shown.output.split())
    assert max(map(len, shown.output.splitlines())) <= 100


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_the_page_of_commands_names_it(path: tuple[str, ...]) -> None:
    assert f"`walstream {' '.join(path)}" in (ROOT / "docs" / "verbs.md").read_text()


def test_a_shell_can_complete_it() -> None:
    environment = {"_WALSTREAM_COMPLETE": "complete_bash", "COMP_WORDS": "walstream s"}
    shown = CliRunner().invoke(
        app, [], env={**environment, "COMP_CWORD": "1"}, prog_name="walstream"
    )
    assert "status" in shown.output.split()


def test_who_does_not_answer_changes_nothing_and_has_met_no_defect() -> None:
    asked = Terminal(None, "init").types("\x04", at="PostgreSQL [")
    code, said = asked.ends()
    assert (code, said.splitlines()[-1]) == (130, "nothing was changed")
