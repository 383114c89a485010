"""The man page is made of the command line: nothing of it is left out."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from walstream.cli.main import app

SCRIPT = Path(__file__).parents[2] / "packaging" / "manual.py"


@pytest.fixture(scope="module")
def made() -> str:
    command = [sys.executable, str(SCRIPT), "1.2.3"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def test_every_command_and_option_stands_in_the_man_page(made: str) -> None:
    assert '"walstream 1.2.3"' in made
    page = made.replace(r"\-", "-")
    _, *sections = page.split('.SS "')
    found = dict(commands(get_command(app), "walstream"))
    assert len(sections) == len(found) > 10
    for (path, told), section in zip(found.items(), sections, strict=True):
        assert section.startswith(path)
        for one in told.params:
            if getattr(one, "hidden", False):
                continue
            for option in one.opts if one.param_type_name == "option" else ():
                assert option in section, (path, option)


def test_no_text_is_taken_for_a_request_of_troff(made: str) -> None:
    requests = {line.split()[0] for line in made.splitlines() if line.startswith(".")}
    assert requests == {".TH", ".SH", ".SS", ".TP", ".PP", ".B"}
