"""What repairs a source's error stands beside it, escaped."""

from datetime import UTC, datetime
from typing import Any

from tests.unit.service.http.conftest import Change
from walstream.service.http import repair
from walstream.status.model import SourceStatus

ERROR = {
    "at": 1000.0,
    "error": 'role "nobody" does not exist',
    "hint": "create the role",
    "sql": 'CREATE ROLE "nobody";\nGRANT x TO "<b>";',
    "repair": "walstream positions reset app",
    "then": "walstream run",
    "exit_code": 4,
    "final": True,
}


def source_of(board: Change, **changed: Any) -> SourceStatus:
    truth = board(**changed).truth()
    assert truth is not None
    return truth.status.sources[0]


def test_sql_and_command_can_be_copied_as_they_are(board: Change) -> None:
    source = source_of(board, exit_code=4, pid=None, error=ERROR)
    html = repair.repair(source)
    assert "CREATE ROLE &quot;nobody&quot;;\nGRANT x TO &quot;&lt;b&gt;&quot;;" in html
    assert "<code>walstream positions reset app</code>" in html
    assert "create the role" in html
    assert "Then: walstream run" in html


def test_an_error_that_is_over_has_no_repair(board: Change) -> None:
    source = source_of(board, error=ERROR)
    assert repair.repair(source) == ""
    at = datetime.fromtimestamp(1090.0, UTC)
    html = repair.last_error(source, at)
    assert "1.5 min ago, now over" in html
    assert "role &quot;nobody&quot; does not exist" in html


def test_tables_left_out_have_their_reason_and_sql(board: Change) -> None:
    limit = {"reason": "it has no primary key", "sql": 'ALTER TABLE "a" X;'}
    limits = {f"public.<i>{number}": limit for number in range(12)}
    source = source_of(board, capture={"limits": limits, "more": 5})
    html = repair.limits(source)
    assert html.count("it has no primary key") == 10
    assert "<b>public.&lt;i&gt;0</b>" in html
    assert "<code>ALTER TABLE &quot;a&quot; X;</code>" in html
    assert "and 7 more: walstream check" in html
