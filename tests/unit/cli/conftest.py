"""A configuration, and a running instance that answers what a test says."""

from pathlib import Path

import pytest

from walstream.state import control

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
    monkeypatch: pytest.MonkeyPatch, answer: object
) -> list[tuple[Path, object]]:
    asked = []

    def ask(folder: Path, request: object, _wait_s: float) -> object:
        asked.append((folder, request))
        return answer

    monkeypatch.setattr(control, "ask", ask)
    return asked
