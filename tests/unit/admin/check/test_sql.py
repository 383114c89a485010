"""What is found of polled tables before a run, on SQLite."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.sqlite_source import (
    SOURCE,
    configured,
    execute,
    file_of,
    source_of,
)
from walstream.admin.check.sql import inspect, topics
from walstream.errors import ConfigError, PermissionLacking, Transient
from walstream.finding import Finding, Severity
from walstream.sources.report import TableReport
from walstream.sources.routers import Routers
from walstream.sources.sql import inspector
from walstream.sources.sql.inspection import DatabaseInspection, TableInspection
from walstream.status.sql import StoredPolls

TABLES = """
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (3), (7);
CREATE TABLE texts (id TEXT PRIMARY KEY NOT NULL);
"""


def found(
    folder: Path,
    tables: Mapping[str, Mapping[str, Any]],
    kept: StoredPolls | None = None,
) -> list[Finding]:
    config = configured(folder, tables)
    return list(inspect(config, SOURCE, source_of(config), kept or StoredPolls()))


def seen(
    monkeypatch: pytest.MonkeyPatch, folder: Path, sight: DatabaseInspection
) -> list[Finding]:
    monkeypatch.setattr(inspector, "visit", lambda _source: sight)
    return found(folder, {"t": {}, "u": {}})


def test_what_can_be_polled_leaves_but_a_note(tmp_path: Path) -> None:
    execute(file_of(tmp_path), TABLES)
    (note,) = found(tmp_path, {"t": {}})
    assert (note.code, note.severity) == ("low-water-mark", Severity.NOTE)
    assert note.subject == "table t"
    assert not found(tmp_path, {"t": {"gap_timeout": "0"}})


def test_every_table_that_cannot_be_polled_is_named(tmp_path: Path) -> None:
    execute(file_of(tmp_path), TABLES)
    stops = found(tmp_path, {"none": {}, "texts": {}})
    assert [(stop.code, stop.subject, stop.exit_code) for stop in stops] == [
        ("table", "table none", 2),
        ("table", "table texts", 2),
    ]
    assert stops[1].what.startswith("the key id is not an integer")  # named once


def test_a_position_above_all_rows_is_a_warning(tmp_path: Path) -> None:
    execute(file_of(tmp_path), TABLES)
    kept = StoredPolls({"t": TableReport(key=8)})
    (warning,) = found(tmp_path, {"t": {"gap_timeout": "0"}}, kept)
    assert (warning.code, warning.severity) == (
        "position-beyond-table",
        Severity.WARNING,
    )
    assert not found(
        tmp_path, {"t": {"gap_timeout": "0"}}, StoredPolls({"t": TableReport(key=7)})
    )


def test_a_database_that_is_away_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = DatabaseInspection(problem=Transient("connecting: refused"))
    (stop,) = seen(monkeypatch, tmp_path, away)
    assert (stop.code, stop.exit_code) == ("database-unreachable", 5)
    assert "run would wait" in stop.why


def test_a_missing_right_comes_with_its_grant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = PermissionLacking("table t: denied", hint="GRANT it")
    sight = DatabaseInspection(
        {"t": TableInspection(problem=denied), "u": TableInspection()}
    )
    (stop,) = seen(monkeypatch, tmp_path, sight)
    assert (stop.code, stop.exit_code) == ("table-right", 4)
    login = DatabaseInspection(problem=PermissionLacking("access denied"))
    (stop,) = seen(monkeypatch, tmp_path, login)
    assert (stop.code, stop.exit_code) == ("database-login", 4)
    driver = DatabaseInspection(problem=ConfigError("pip install it"))
    (stop,) = seen(monkeypatch, tmp_path, driver)
    assert (stop.code, stop.exit_code) == ("database", 2)


def test_tables_without_a_mark_for_one_reason_are_one_note_with_its_grant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant = "GRANT PROCESS ON *.* TO 'a'@'%';"
    table = TableInspection(lacks_mark=f"the right to see transactions: {grant}")
    (note,) = seen(monkeypatch, tmp_path, DatabaseInspection({"t": table, "u": table}))
    assert note.subject == "tables t, u"
    assert note.repair.sql == grant
    other = TableInspection(lacks_mark="a replica does not show")
    (note,) = seen(
        monkeypatch, tmp_path, DatabaseInspection({"t": other, "u": TableInspection()})
    )
    assert (note.subject, note.repair.sql) == ("table t", "")


def test_tables_without_a_topic_are_named_beside_the_topics(tmp_path: Path) -> None:
    config = configured(
        tmp_path, {"t": {}, "u": {}}, topic="", topics={"t": {"name": "rows_of_t"}}
    )
    named, (stop,) = topics(Routers(config, SOURCE), SOURCE, source_of(config))
    assert named == {"rows": {"rows_of_t"}}
    assert (stop.code, stop.subject, stop.exit_code) == ("topic-name", "table u", 2)
