"""Counting and folding: what is lost shows as missing, what comes twice as repeated."""

import json
from collections import Counter

import pytest

from walstream.cli.demo.tally import DemoChange, DemoTally, Rows, judge, percentile
from walstream.kafka.topic_reader import TopicRecord

CUSTOMERS = "shop.customers"
COLUMNS = ["id", "name", "note"]


def record(  # noqa: PLR0913 - a record's parts
    seq_id: int,
    op: object,
    *,
    key: str = "1",
    absent: dict[str, list[str]] | None = None,
    timestamp_ms: int = 1000,
    headers: tuple[tuple[str, bytes | None], ...] = (),
) -> TopicRecord:
    value: dict[str, object] = {
        "table_name": "customers",
        "col_names": COLUMNS,
        "lsn": 28318112,
        "seq_id": seq_id,
        "op": op,
        "schema": "shop",
    }
    if absent:
        value["absent"] = absent
    return TopicRecord(
        topic=CUSTOMERS,
        partition=0,
        offset=seq_id,
        key=json.dumps([key]).encode(),
        value=json.dumps(value).encode(),
        headers=headers,
        timestamp_ms=timestamp_ms,
    )


def insert(seq_id: int, key: str = "1") -> TopicRecord:
    return record(seq_id, {"Insert": [key, "Ada", "long"]}, key=key)


def tally_of(*records: TopicRecord) -> DemoTally:
    tally = DemoTally()
    for one in records:
        tally.take(one, 1010.0)
    return tally


def table(*rows: tuple[str, str, str]) -> dict[str, Rows]:
    return {
        CUSTOMERS: {(row[0],): dict(zip(COLUMNS, row, strict=True)) for row in rows}
    }


def changes(*named: tuple[str, str]) -> Counter[DemoChange]:
    return Counter(DemoChange(CUSTOMERS, kind, (key,)) for kind, key in named)


def test_all_that_was_written_and_nothing_else_is_well() -> None:
    verdict = judge(
        changes(("Insert", "1"), ("Insert", "2")),
        table(("1", "Ada", "long"), ("2", "Ada", "long")),
        tally_of(insert(0, "1"), insert(1, "2")),
    )
    assert verdict.ok
    assert (verdict.written, verdict.delivered, verdict.rows) == (2, 2, 2)


def test_dropped_record_is_missing() -> None:
    verdict = judge(
        changes(("Insert", "1"), ("Insert", "2")),
        table(("1", "Ada", "long"), ("2", "Ada", "long")),
        tally_of(insert(0, "1")),
    )
    assert not verdict.ok
    assert verdict.missing == changes(("Insert", "2"))
    assert verdict.unequal == [(CUSTOMERS, ("2",))]


def test_dropped_update_is_missing_though_a_later_one_hides_it() -> None:
    last = record(2, {"Update": [None, ["1", "Eve", "long"]]})
    verdict = judge(
        changes(("Insert", "1"), ("Update", "1"), ("Update", "1")),
        table(("1", "Eve", "long")),
        tally_of(insert(0), last),
    )
    assert not verdict.unequal
    assert verdict.missing == changes(("Update", "1"))
    assert not verdict.ok


def test_repeated_record_counts_as_repeated_and_not_as_delivered() -> None:
    tally = tally_of(insert(0), insert(0))
    verdict = judge(changes(("Insert", "1")), table(("1", "Ada", "long")), tally)
    assert verdict.ok
    assert (verdict.delivered, verdict.repeated, tally.total) == (1, 1, 1)


def test_repeat_does_not_stand_in_for_a_dropped_record() -> None:
    update = record(1, {"Update": [None, ["1", "Eve", "long"]]})
    verdict = judge(
        changes(("Insert", "1"), ("Update", "1"), ("Update", "1")),
        table(("1", "Eve", "long")),
        tally_of(insert(0), update, update),
    )
    assert verdict.missing.total() == 1


def test_repeat_does_not_bring_back_an_older_row() -> None:
    delete = record(1, {"Delete": ["1", None, None]}, absent={"old": ["name", "note"]})
    tally = tally_of(insert(0), delete, insert(0))
    assert tally.rows(CUSTOMERS) == {}


def test_record_that_nobody_wrote_is_not_well() -> None:
    verdict = judge(changes(), table(), tally_of(insert(0)))
    assert not verdict.ok
    assert verdict.unwritten == changes(("Insert", "1"))


def test_value_that_was_not_sent_is_the_earlier_one() -> None:
    update = record(1, {"Update": [None, ["1", "Eve", None]]}, absent={"new": ["note"]})
    assert tally_of(insert(0), update).rows(CUSTOMERS) == {
        ("1",): {"id": "1", "name": "Eve", "note": "long"}
    }


def test_null_replaces_the_earlier_value() -> None:
    update = record(1, {"Update": [None, ["1", "Eve", None]]})
    assert tally_of(insert(0), update).rows(CUSTOMERS)[("1",)]["note"] is None


def test_value_that_never_came_equals_nothing() -> None:
    update = record(0, {"Update": [None, ["1", "Eve", None]]}, absent={"new": ["note"]})
    contents: dict[str, Rows] = {
        CUSTOMERS: {("1",): {"id": "1", "name": "Eve", "note": None}}
    }
    assert judge(changes(("Update", "1")), contents, tally_of(update)).unequal


def test_truncate_and_tombstone_are_no_change() -> None:
    tombstone = TopicRecord(CUSTOMERS, 0, 1, b'["1"]', None, (), 1000)
    tally = tally_of(record(0, "Truncate"), record(0, "Truncate"), tombstone)
    assert (tally.total, tally.repeated) == (0, 0)


def test_latency_is_from_commit_to_receipt_and_counts_first_records_only() -> None:
    tally = DemoTally()
    tally.take(insert(0), 1012.0)
    tally.take(insert(0), 9000.0)
    assert tally.latencies == [(1000, 12.0)]


def test_first_record_of_a_producer_is_told_apart() -> None:
    first = record(
        0, {"Insert": ["1", "Ada", ""]}, headers=(("walstream-source", b"x"),)
    )
    tally = DemoTally()
    arrivals = [tally.take(one, 1000.0) for one in (first, insert(1))]
    assert [one and one.first_of_producer for one in arrivals] == [True, False]


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([], 50, 0),
        ([7], 99, 7),
        ([3, 1, 2], 50, 2),
        (range(1, 101), 99, 99),
        (range(1, 101), 100, 100),
    ],
)
def test_percentile_is_the_nearest_rank(
    values: list[float], percent: float, expected: float
) -> None:
    assert percentile(values, percent) == expected
