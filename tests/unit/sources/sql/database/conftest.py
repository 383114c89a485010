"""A SQLite file that a test fills by itself and reads through SQLAlchemy."""

from pathlib import Path

import pytest

from tests.support.servers.sqlite import Lite


@pytest.fixture
def lite(tmp_path: Path) -> Lite:
    made = Lite(tmp_path / "polled.db")
    made.execute("PRAGMA journal_mode = WAL")
    return made
