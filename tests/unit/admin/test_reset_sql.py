"""A reset forgets every table, and says beforehand where each begins then."""

from pathlib import Path

import pytest

from tests.support.loads.poll_progress import keep, kept
from tests.support.programs.sqlite_source import SOURCE, configured, state_of
from walstream.admin import reset_sql
from walstream.admin.reset_sql import reset
from walstream.config import Config
from walstream.errors import PermissionLacking
from walstream.state.lock import holder
from walstream.state.store import LmdbStore
from walstream.status.sql import (
    StoredPolls,
)


def asked(config: Config, *, agrees: bool = True) -> str:
    """Reset; give what was asked."""
    said: list[str] = []

    def consent(what: str) -> bool:
        said.append(what)
        return agrees

    reset(config, SOURCE, consent)
    (what,) = said
    return what


def test_all_that_is_known_of_the_source_is_forgotten(tmp_path: Path) -> None:
    config = configured(tmp_path, {"t": {}})
    keep(state_of(config), "t", key=20)
    keep(state_of(config), "old", key=7)
    with LmdbStore(state_of(config)) as positions:
        positions.write({"error": {"error": "x"}})
    done = reset(config, SOURCE, lambda _: True)
    assert done == "source 'legacy' is reset; the next run starts from scratch"
    with LmdbStore.open_read_only(state_of(config)) as left:
        assert left is None
    assert holder(state_of(config)) is None


def test_where_each_table_begins_is_said_before(tmp_path: Path) -> None:
    starts = {"a": {}, "b": {"start": "end"}, "c": {}, "d": {"start": "after:7"}}
    config = configured(tmp_path, starts)
    keep(state_of(config), "a", key=20)
    what = asked(config)
    assert "Source 'legacy' (a: 20) forgets" in what
    assert "Then a, c begin with the first row: all existing rows are sent" in what
    assert "Then b begins with rows that come from then on" in what
    assert "Then d begins after key 7." in what


def test_of_many_tables_the_first_are_named(tmp_path: Path) -> None:
    config = configured(tmp_path, {f"t{number}": {} for number in range(9)})
    assert "Then t0, t1, t2, t3, t4 and 4 more begin with" in asked(config)


def test_who_does_not_agree_changes_nothing(tmp_path: Path) -> None:
    config = configured(tmp_path, {"t": {}})
    keep(state_of(config), "t", key=20)
    asked(config, agrees=False)
    assert kept(state_of(config), "t") is not None


def test_a_damaged_state_can_be_reset(tmp_path: Path) -> None:
    config = configured(tmp_path, {"t": {}})
    keep(state_of(config), "t", key=20)
    (state_of(config) / "data.mdb").write_bytes(b"x" * 8192)
    assert "its state is damaged" in asked(config)
    assert kept(state_of(config), "t") is None


def test_a_state_of_somebody_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = StoredPolls(problem=PermissionLacking("cannot be read"))
    monkeypatch.setattr(reset_sql, "kept_of", lambda *_: denied)
    with pytest.raises(PermissionLacking):
        reset(configured(tmp_path, {"t": {}}), SOURCE, lambda _: True)
