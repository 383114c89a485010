"""What is left of polls is read as the configuration has it."""

from pathlib import Path

from tests.support.loads.poll_progress import keep
from walstream.config import SqlSource
from walstream.errors import StateDamaged
from walstream.state.store import LmdbStore
from walstream.status.lookup.sql import kept_of


def source(*tables: str) -> SqlSource:
    return SqlSource.model_validate(
        {
            "kind": "sql",
            "url": "sqlite:///x",
            "sinks": ["rows"],
            "tables": {name: {"primary_key": "id"} for name in tables},
        }
    )


def test_a_folder_that_is_not_there_tells_nothing(tmp_path: Path) -> None:
    assert not kept_of(source("t"), tmp_path / "legacy").tables
    assert not (tmp_path / "legacy").exists()


def test_tables_are_those_of_the_configuration_and_others_are_named(
    tmp_path: Path,
) -> None:
    keep(tmp_path, "t", key=12, missing=[(4, 6)], rows=9)
    keep(tmp_path, "old", key=1)
    found = kept_of(source("t", "new"), tmp_path)
    assert found.tables.keys() == {"t"}
    assert found.others == ("old",)
    assert found.problem is None
    table = found.tables["t"]
    assert (table.key, table.rows, table.missing_keys) == (12, 9, 3)


def test_the_last_error_is_told_too(tmp_path: Path) -> None:
    with LmdbStore(tmp_path) as positions:
        positions.write({"error": {"error": "it is away", "final": False}})
    error = kept_of(source("t"), tmp_path).error
    assert error is not None
    assert error.error == "it is away"


def test_damage_is_a_problem_and_no_exception(tmp_path: Path) -> None:
    with LmdbStore(tmp_path) as positions:
        positions.write({"poll/t": {"key": 1, "gaps": ["damage"]}})
    found = kept_of(source("t"), tmp_path)
    assert isinstance(found.problem, StateDamaged)
    assert not found.tables
