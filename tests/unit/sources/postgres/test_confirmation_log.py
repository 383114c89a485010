"""What -v says of each confirmed position: counts since the one before."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from walstream.sources.postgres import confirmation_log
from walstream.sources.postgres.confirmation_log import ConfirmationLog
from walstream.telemetry.meter import TableMeters


class Counts:
    def __init__(self) -> None:
        self.tables = TableMeters()
        self.delivered = 0
        self.log = ConfirmationLog(lambda: self.delivered, self.tables)

    def add(self, **ops: int) -> None:
        for name, count in ops.items():
            self.tables.of(name).ops += count
            self.delivered += count


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Collect what is logged, whatever level the tests before have configured."""
    entries: list[dict[str, Any]] = []

    class Log:
        def debug(self, event: str, **fields: Any) -> None:
            entries.append({"event": event, **fields})

    monkeypatch.setattr(confirmation_log, "_log", Log())
    return entries


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    before = logger.level
    logger.setLevel(logging.DEBUG)
    yield logger
    logger.setLevel(before)


@pytest.mark.usefixtures("root")
def test_each_position_has_the_counts_since_the_one_before(
    logs: list[dict[str, Any]],
) -> None:
    counts = Counts()
    counts.add(a=2, b=1000)
    counts.log.note(0x10)
    counts.log.note(0x20)  # a keepalive alone
    counts.add(a=1)
    counts.log.note(0x30)
    assert [(one["lsn"], one["delivered"], one["read"]) for one in logs] == [
        ("0/10", 1002, "b 1,000, a 2"),
        ("0/30", 1, "a 1"),
    ]


@pytest.mark.usefixtures("root")
def test_each_op_is_named_once_though_read_and_delivered_apart(
    logs: list[dict[str, Any]],
) -> None:
    counts = Counts()
    counts.tables.of("a").ops += 50
    counts.log.note(0x10)  # read, and on its way
    counts.delivered += 30
    counts.log.note(0x20)
    counts.delivered += 20
    counts.log.note(0x30)
    assert [(one["lsn"], one["delivered"], one.get("read")) for one in logs] == [
        ("0/20", 30, "a 50"),
        ("0/30", 20, None),
    ]


@pytest.mark.usefixtures("root")
def test_many_tables_are_counted(logs: list[dict[str, Any]]) -> None:
    counts = Counts()
    counts.add(**{f"t{number}": number for number in range(1, 10)})
    counts.log.note(1)
    assert logs[0]["read"] == "t9 9, t8 8, t7 7, t6 6, t5 5, and 4 more tables"


def test_without_debug_nothing_is_counted(
    root: logging.Logger, logs: list[dict[str, Any]]
) -> None:
    counts = Counts()
    root.setLevel(logging.INFO)
    counts.add(a=2)
    counts.log.note(0x10)
    root.setLevel(logging.DEBUG)  # as `walstream debug on` does
    counts.log.note(0x20)
    counts.add(a=3)
    counts.log.note(0x30)
    assert [(one["lsn"], one["delivered"]) for one in logs] == [("0/30", 3)]
