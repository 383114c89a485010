"""What `walstream reload` prints. The reload: tests/integration/test_reload.py."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.unit.cli.conftest import answering
from walstream.cli.main import app
from walstream.errors import ConfigError
from walstream.state.control_message import ReloadAnswer, ReloadRequest


@pytest.mark.parametrize(
    ("answer", "printed"),
    [
        (ReloadAnswer(), "nothing changed\n"),
        (
            ReloadAnswer(("memory",), ("source 'app' begins again",)),
            "source 'app' begins again\nchanged: memory\n",
        ),
    ],
)
def test_it_prints_what_was_done_and_for_which_keys(
    monkeypatch: pytest.MonkeyPatch, file: Path, answer: ReloadAnswer, printed: str
) -> None:
    asked = answering(monkeypatch, answer)
    done = CliRunner().invoke(app, ["reload", "-c", str(file)])
    assert (done.exit_code, done.output) == (0, printed)
    assert asked == [(file.parent / "state", ReloadRequest())]


def test_where_none_runs_it_says_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    answering(monkeypatch, None)
    done = CliRunner().invoke(app, ["reload", "-c", str(file)])
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception.hint) == f"walstream run -c {file} starts one"
