"""What is said of the topics' ends beside a position and a server."""

from dataclasses import replace

import pytest

from walstream.finding import Severity
from walstream.kafka.last_op import LastOp
from walstream.lsn import Lsn
from walstream.status.positions.model import ServerFacts, StateFacts
from walstream.status.positions.remark import remarks

MIB = 1 << 20
STATE = StateFacts(resume=1000 * MIB)
SERVER = ServerFacts("18.1", 7, 1, "d", flush_lsn=2000 * MIB, kept_from=0)


def codes(lsn: Lsn, state: StateFacts | None, server: ServerFacts | None) -> list[str]:
    last = LastOp(lsn, 0, "t", 0, 0, "")
    return [found.code for found in remarks("app", state, server, last)]


def test_nothing_is_said_of_empty_topics() -> None:
    assert not list(remarks("app", STATE, SERVER, None))


@pytest.mark.parametrize(
    ("lsn", "said"),
    [
        (1000 * MIB - 1, []),
        (1000 * MIB, ["topics-beyond-position"]),
        (936 * MIB, []),
        (936 * MIB - 1, ["position-beyond-topics"]),
        (2000 * MIB - 1, ["topics-beyond-position"]),
        (2000 * MIB, ["topics-beyond-position", "topics-beyond-server"]),
    ],
)
def test_what_lies_apart_is_named(lsn: Lsn, said: list[str]) -> None:
    assert codes(lsn, STATE, SERVER) == said


def test_while_it_streams_the_position_follows_the_topics() -> None:
    running = replace(STATE, process="7")
    assert codes(1500 * MIB, running, SERVER) == []
    assert codes(2000 * MIB, running, SERVER) == ["topics-beyond-server"]


def test_what_is_not_known_is_not_compared() -> None:
    assert codes(5000 * MIB, None, None) == []
    assert codes(5000 * MIB, StateFacts(), replace(SERVER, flush_lsn=0)) == []


def test_records_that_the_server_never_wrote_are_a_warning() -> None:
    last = LastOp(2000 * MIB, 3, "t", 0, 0, "")
    (found,) = remarks("app", None, SERVER, last)
    assert found.severity is Severity.WARNING
    assert "(0/7D000000, 3)" in found.what
