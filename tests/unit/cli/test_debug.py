"""What `walstream debug` prints and asks for."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.unit.cli.conftest import answering
from walstream.cli.main import app
from walstream.errors import ConfigError
from walstream.state.control_message import DebugAnswer, DebugRequest


@pytest.mark.parametrize(("switch", "level"), [("on", "debug"), ("off", "warning")])
def test_it_asks_over_the_control_socket(
    monkeypatch: pytest.MonkeyPatch, file: Path, switch: str, level: str
) -> None:
    asked = answering(monkeypatch, DebugAnswer(level))
    done = CliRunner().invoke(app, ["debug", switch, "-c", str(file)])
    said = f"every process logs from level {level} on\n"
    assert (done.exit_code, done.output) == (0, said)
    request = DebugRequest(switch == "on")
    assert asked == [(file.parent / "state", request)]


def test_any_other_word_is_refused(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    asked = answering(monkeypatch, DebugAnswer("debug"))
    assert CliRunner().invoke(app, ["debug", "maybe", "-c", str(file)]).exit_code == 2
    assert not asked


def test_where_none_runs_it_says_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    answering(monkeypatch, None)
    done = CliRunner().invoke(app, ["debug", "on", "-c", str(file)])
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception.hint) == f"walstream run -c {file} starts one"
