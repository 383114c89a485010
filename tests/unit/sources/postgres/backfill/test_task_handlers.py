"""Rows of a task behind handlers: numbered as they were read, and none lost."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from walstream.errors import ConfigError, Transient
from walstream.formats import encoder_of
from walstream.formats.context import Context
from walstream.formats.op import decode
from walstream.op import Kind, ReplicationOp, Table
from walstream.records.handlers import HANDLERS, Out, ProducerRecord
from walstream.records.handlers.chain import Chain, Spec
from walstream.records.router import Router, RoutingRules
from walstream.sources.postgres.backfill.task_handlers import HandledRows

TABLE = Table("public", "t", ("id", "v"), (0,))
OP = ReplicationOp(Kind.INSERT, TABLE, 8, 0, snapshot=True)


class Odd:
    """Once it cannot, then it can."""

    tries = 0

    def __init__(self, _: Table, __: Mapping[str, Any]) -> None: ...

    def handle(self, op: ReplicationOp) -> Iterator[Out]:
        (number, value) = op.new or ("", "")
        if value == "later" and not Odd.tries:
            Odd.tries += 1
            raise Transient("not now")
        if value == "bad":
            raise ValueError("s3cret")
        if value == "record":
            yield ProducerRecord(b"k", str(number).encode())
        if value == "named":
            yield ProducerRecord(b"k", b"v", "topic")
        if value == "null":
            yield ProducerRecord(None, b"v")
        if value == "elsewhere":
            other = Table("public", "u", ("id", "v"), (0,))
            yield ReplicationOp(Kind.INSERT, other, 8, 0, new=op.new)
        if value in {"x", "later"}:
            yield op


def rows(checks: list[None] | None = None) -> HandledRows:
    told = [] if checks is None else checks
    return HandledRows(
        Chain([Spec("odd", ("*",), {})]),
        Router("app", RoutingRules({}, "{schema}.{table}", "")),
        encoder_of("op"),
        Context(),
        lambda: told.append(None),
    )


@pytest.fixture(autouse=True)
def odd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HANDLERS, "odd", Odd)
    Odd.tries = 0


def test_records_carry_the_numbers_of_their_rows() -> None:
    handled = rows()
    with capture_logs() as said:
        made = handled.made(
            OP, [["1", "x"], ["2", ""], ["3", "bad"], ["4", "record"], ["5", "x"]], 7
        )
    assert made.keys == [b'["1"]', b"k", b'["5"]']
    assert made.seq_ids == [7, 10, 11]
    assert made.values[1] == b"4"
    first = decode(made.values[0])
    assert (first.seq_id, first.snapshot) == (7, True)
    assert handled.tally.document() == {"public.t": {"skipped": 1, "failed": 1}}
    (line,) = said
    assert line["seq_id"] == 9
    assert "s3cret" not in str(line)


def test_a_handler_that_cannot_now_is_waited_for() -> None:
    checks: list[None] = []
    made = rows(checks).made(OP, [["1", "later"]], 0)
    assert len(made.values) == len(checks) == 1


def test_a_row_stays_in_the_topics_that_the_task_knows() -> None:
    with pytest.raises(ConfigError, match="another topic"):
        rows().made(OP, [["1", "elsewhere"]], 0)


@pytest.mark.parametrize("value", ["named", "null"])
def test_records_of_which_tasks_know_too_little_are_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="tasks of Spark cannot send them") as caught:
        rows().made(OP, [["1", value]], 7)
    assert "walstream backfill public.t" in caught.value.hint
