"""What an audit prints: neighbours as one line, the worst first, not all of many."""

import io
from datetime import UTC, datetime

from rich.console import Console

from walstream.cli.positions_audit import print_audit
from walstream.config import Config
from walstream.kafka.delivery_audit import PartitionAudit, TopicAudit
from walstream.kafka.delivery_verdict import Agreement
from walstream.status.positions.audit_model import (
    Audit,
    SinkAudit,
    SourceAudit,
    WalGap,
)
from walstream.status.positions.model import StartOutcome, Verdict


def partition(number: int, verdict: Agreement, why: str, last: int) -> PartitionAudit:
    left_out = verdict is Agreement.AGREE and not why and last > 0
    return PartitionAudit(number, verdict, why, 10, last or None, 0, left_out)


def printed(*topics: TopicAudit, gap: WalGap | None = None) -> list[str]:
    sink = SinkAudit("k", Agreement.AGREE, "in sum", 0x100, None, [*topics])
    start = Verdict(StartOutcome.STREAM, "")
    verdict = Agreement.MISSING if gap else Agreement.AGREE
    source = SourceAudit("app", verdict, start, None, None, None, gap, [sink], [])
    out = io.StringIO()
    console = Console(file=out, width=100, highlight=False)
    found = Audit(datetime.fromtimestamp(0, UTC), 0, verdict, [source])
    print_audit(console, found, Config())
    return [line.strip() for line in out.getvalue().splitlines()]


def test_partitions_of_which_the_same_is_said_are_one_line() -> None:
    found = [
        partition(0, Agreement.AGREE, "", 0x200),
        partition(1, Agreement.AGREE, "", 0x300),
        partition(2, Agreement.AGREE, "", 0),
        partition(3, Agreement.AGREE, "", 0x200),
        partition(4, Agreement.REPEATED, "other rules", 0x400),
    ]
    lines = printed(TopicAudit("t", Agreement.REPEATED, "", found))
    assert "✓ t[0-1, 3]: agree: left out, since Kafka has it, up to 0/300" in lines
    assert "! t[4]: repeated: other rules, up to 0/400" in lines
    assert "sink k: ✓ agree: in sum" in lines


def test_the_worst_topic_comes_first_and_its_reason_is_one() -> None:
    fine = TopicAudit("a", Agreement.AGREE, "", [partition(0, Agreement.AGREE, "", 5)])
    gone = TopicAudit("z", Agreement.MISSING, "it is gone", [])
    lines = printed(fine, gone)
    assert lines[-2:] == [
        "✗ z: missing: it is gone",
        "✓ a[0]: agree: left out, since Kafka has it, up to 0/5",
    ]


def test_of_many_topics_some_are_printed() -> None:
    gone = [TopicAudit(f"t{n}", Agreement.MISSING, "gone", []) for n in range(100)]
    lines = printed(*gone)
    assert lines[-1] == "and 70 more: --json has all"
    assert len([line for line in lines if "missing: gone" in line]) == 30


def test_a_gap_is_told_with_its_ends() -> None:
    lines = printed(gap=WalGap(0x100, 0x200, "slot 's' is gone"))
    assert "source app: ✗ missing" in lines
    assert "✗ missing: changes from 0/100 to 0/200: slot 's' is gone" in lines


def test_names_cannot_drive_the_terminal() -> None:
    lines = printed(TopicAudit("t\x1b[2J", Agreement.MISSING, "gone", []))
    assert not any("\x1b" in line for line in lines)
