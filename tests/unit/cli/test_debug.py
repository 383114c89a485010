"""What `walstream debug` prints and asks for."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from walstream import control
from walstream.cli.main import app
from walstream.errors import ConfigError

FILE = """
[sources.app]
kind = "postgres"
dsn = "host=/run/postgresql"
sinks = ["log"]
[sinks.log]
kind = "log"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "walstream.toml"
    made.write_text(FILE)
    return made


def answering(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any] | None
) -> list[tuple[Path, dict[str, Any]]]:
    asked = []

    def ask(
        folder: Path, request: dict[str, Any], _wait_s: float
    ) -> dict[str, Any] | None:
        asked.append((folder, request))
        return answer

    monkeypatch.setattr(control, "ask", ask)
    return asked


@pytest.mark.parametrize(("switch", "level"), [("on", "debug"), ("off", "warning")])
def test_it_asks_over_the_control_socket(
    monkeypatch: pytest.MonkeyPatch, file: Path, switch: str, level: str
) -> None:
    asked = answering(monkeypatch, {"level": level})
    done = CliRunner().invoke(app, ["debug", switch, "-c", str(file)])
    said = f"every process logs from level {level} on\n"
    assert (done.exit_code, done.output) == (0, said)
    request = {"do": "debug", "on": switch == "on"}
    assert asked == [(file.parent / "state", request)]


def test_any_other_word_is_refused(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    asked = answering(monkeypatch, {"level": "debug"})
    assert CliRunner().invoke(app, ["debug", "maybe", "-c", str(file)]).exit_code == 2
    assert not asked


def test_where_none_runs_it_says_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    answering(monkeypatch, None)
    done = CliRunner().invoke(app, ["debug", "on", "-c", str(file)])
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception.hint) == f"walstream run -c {file} starts one"
