"""An audit in words for each sink, and what a slot lost for sure."""

from dataclasses import replace

import pytest

from walstream.config import PostgresSource
from walstream.kafka.delivery_audit import PartitionAudit, TopicAudit
from walstream.kafka.delivery_verdict import Agreement, worst
from walstream.pipeline.ports import Position
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot
from walstream.postgres.start_table import StoredState
from walstream.status.positions.audit_model import SinkAudit, WalGap
from walstream.status.positions.audit_sum import gap, of_sink, with_gap
from walstream.status.positions.verdict import StartFacts

SERVER = Server(
    system_identifier=7,
    timeline=1,
    database="shop",
    in_recovery=False,
    wal_level="logical",
    encoding="UTF8",
    wal_sender_timeout_ms=60000,
    may_replicate=True,
    flush_lsn=1000,
)
SLOT = Slot("s", "logical", "pgoutput", "shop", None, "reserved", None, 100)
POSITION = Position(500, 7, 1, "shop", "s")
SOURCE = PostgresSource(kind="postgres", dsn="dbname=shop", slot="s", sinks=["kafka"])


def partition(
    verdict: Agreement, last: int | None = None, why: str = ""
) -> PartitionAudit:
    left_out = verdict is Agreement.AGREE and last is not None and last >= 500
    return PartitionAudit(0, verdict, why, 10, last, 0, left_out)


def summed(*partitions: PartitionAudit, why: str = "") -> SinkAudit:
    verdict = worst(one.verdict for one in partitions)
    return of_sink("k", 500, [TopicAudit("t", verdict, "", [*partitions])], why)


AGREES = partition(Agreement.AGREE, 400)
LEFT_OUT = partition(Agreement.AGREE, 0x300)
REPEATED = partition(Agreement.REPEATED, 0x400, "other rules")
UNKNOWN = partition(Agreement.UNKNOWN, None, "not in time")
FOREIGN = partition(Agreement.FOREIGN, 0x900, "of another")
MISSING = partition(Agreement.MISSING, None, "cut off")


@pytest.mark.parametrize(
    ("partitions", "verdict", "text", "up_to"),
    [
        ((AGREES,), "agree", "nothing is beyond the position 0/1F4", None),
        (
            (AGREES, LEFT_OUT),
            "agree",
            (
                "changes from 0/1F4 to 0/300 are there in 1 partition, and will"
                " be left out"
            ),
            0x300,
        ),
        (
            (LEFT_OUT, REPEATED, REPEATED),
            "repeated",
            "changes from 0/1F4 to 0/400 come again in 2 partitions: other rules",
            0x400,
        ),
        ((UNKNOWN, AGREES), "unknown", "1 partition: not in time", None),
        ((FOREIGN, REPEATED), "foreign", "1 partition: of another", 0x400),
        ((FOREIGN, MISSING), "missing", "1 partition: cut off", None),
    ],
)
def test_the_worst_is_told_and_how_far_it_goes(
    partitions: tuple[PartitionAudit, ...], verdict: str, text: str, up_to: int | None
) -> None:
    found = summed(*partitions)
    assert (found.verdict.value, found.text, found.up_to) == (verdict, text, up_to)


def test_what_a_sink_was_not_sent_is_not_agreed_with() -> None:
    """A backfill may have brought the rows since: nobody knows."""
    found = with_gap(summed(AGREES), "changes from 0/1 to 0/2 were not sent to it")
    assert found.verdict is Agreement.UNKNOWN
    assert "0/1F4; changes from 0/1 to 0/2 were not sent to it" in found.text
    assert with_gap(summed(AGREES), "") == summed(AGREES)
    assert with_gap(summed(MISSING), "lacks") == summed(MISSING)


def test_a_topic_that_is_gone_is_the_reason() -> None:
    gone = TopicAudit("t", Agreement.MISSING, "it is gone", [])
    found = of_sink("k", 500, [gone, gone])
    assert (found.verdict.value, found.text) == ("missing", "2 topics: it is gone")


def test_records_without_names_are_unknown_and_a_topic_of_them_no_more() -> None:
    aside = TopicAudit("t.transactions", Agreement.UNKNOWN, "no names", [])
    found = of_sink("k", 500, [aside, TopicAudit("t", Agreement.AGREE, "", [AGREES])])
    assert found.verdict is Agreement.AGREE
    found = of_sink("k", 500, [aside], "the format has none")
    assert (found.verdict.value, found.text) == ("unknown", "the format has none")


def seen(
    slot: Slot | None,
    server: Server | None = SERVER,
    position: Position | None = POSITION,
) -> StartFacts:
    return StartFacts("app", SOURCE, StoredState(position), slot=slot, server=server)


def test_a_slot_that_can_send_all_has_no_gap() -> None:
    assert gap(seen(SLOT)) is None
    assert gap(seen(replace(SLOT, confirmed_flush_lsn=500))) is None


@pytest.mark.parametrize(
    ("slot", "ends", "why"),
    [
        (None, 1000, "is gone"),
        (replace(SLOT, wal_status="lost"), 1000, "cannot be read"),
        (replace(SLOT, confirmed_flush_lsn=501), 501, "confirmed beyond the position"),
    ],
)
def test_what_a_slot_sends_no_more_is_missing(
    slot: Slot | None, ends: int, why: str
) -> None:
    found = gap(seen(slot))
    assert found is not None
    assert replace(found, why="") == WalGap(500, ends, "")
    assert why in found.why


@pytest.mark.parametrize(
    "facts",
    [
        seen(None, position=None),  # there never was one
        seen(None, server=None),
        seen(None, server=replace(SERVER, flush_lsn=0)),  # a standby
        seen(None, server=replace(SERVER, system_identifier=8)),
        seen(None, server=replace(SERVER, database="other")),
        seen(None, position=replace(POSITION, slot="before")),
        # another instance has it, and delivers what this one does not
        seen(replace(SLOT, confirmed_flush_lsn=501, active_pid=4)),
    ],
)
def test_what_is_not_certain_is_not_missing(facts: StartFacts) -> None:
    assert gap(facts) is None
