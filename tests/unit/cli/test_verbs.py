"""A verb loads no other one; who looks at all of them finds them."""

import subprocess
import sys

import pytest
import typer

from tests.support.programs.fork_server import MODULES
from walstream.cli.main import app
from walstream.cli.verbs import VERBS

_ASK = """
import sys
from walstream.cli.main import app
sys.argv = ["walstream", *{words}]
try:
    app()
finally:
    sys.stderr.write(" ".join({modules} & sys.modules.keys()))
"""


def loaded_by(*words: str) -> set[str]:
    """Name the verbs whose modules a command line loads."""
    code = _ASK.format(words=words, modules={f"walstream.cli.{verb}" for verb in VERBS})
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    return {name.removeprefix("walstream.cli.") for name in done.stderr.split()}


def test_a_verb_loads_no_other_one() -> None:
    assert loaded_by("run", "--help") == {"run"}


def test_a_version_loads_no_verb() -> None:
    assert loaded_by("--version") == set()


def test_the_help_of_all_loads_all() -> None:
    assert {"run", "slots", "positions"} <= loaded_by("--help")


def test_each_is_a_command_of_its_name() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert [command.name for command in commands.values()] == list(VERBS)


@pytest.mark.parametrize("module", [one for one in MODULES if ".cli." in one])
def test_what_tests_load_before_a_fork_needs_nothing_else_loaded(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
