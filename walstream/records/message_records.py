"""Logical messages as finished records, for one sink."""

from collections.abc import Callable
from typing import Final

import structlog

from walstream.lsn import show
from walstream.op import Kind, MessageOp, ReplicationOp, Table
from walstream.records.message_router import MessageRouter, RefusedMessage
from walstream.records.producer_record import ProducerRecord
from walstream.telemetry.fields import ERROR, HINT, LSN, SINK
from walstream.telemetry.tally import Tally
from walstream.telemetry.throttle import Throttle

FUNCTION: Final = "pg_logical_emit_message"  # in the place of their table
_SAY_AGAIN_S: Final = 60.0
_SHOWN: Final = 60  # characters of a prefix
_NAMED: Final = 249  # of a topic's name, at most
_log = structlog.get_logger()

Write = Callable[[MessageOp, str], ProducerRecord]


class MessageRecords:
    """Records of the messages that a sink wants."""

    def __init__(
        self,
        sink: str,
        router: MessageRouter,
        tally: Tally,
        write: Write | None = None,
    ) -> None:
        """`write` makes the record of a message for its topic; default: its content.

        One that can have no topic counts as failed in `tally`.
        """
        self._sink = sink
        self._router = router
        self._tally = tally
        self._write = write or self._content
        self._throttle = Throttle(_SAY_AGAIN_S)

    def made(self, message: MessageOp) -> ProducerRecord | None:
        """Return a message's record; None: it is not wanted, or refused."""
        try:
            topic = self._router.topic(message.prefix)
        except RefusedMessage as error:
            self._refuse(message, error)
            return None
        return None if topic is None else self._write(message, topic)

    def _content(self, message: MessageOp, topic: str) -> ProducerRecord:
        headers = [
            ("prefix", message.prefix.encode()),
            ("lsn", b"%d" % message.row_lsn),
        ]
        if message.xid is not None:
            headers.append(("xid", b"%d" % message.xid))
        key = self._router.key(message)
        return ProducerRecord(key, message.content, topic, headers)

    def _refuse(self, message: MessageOp, error: RefusedMessage) -> None:
        self._tally.failed[FUNCTION] += 1
        if self._throttle.is_due(str(error)):
            _log.error(
                "a logical message is not sent",
                **{
                    SINK: self._sink,
                    LSN: show(message.row_lsn),
                    ERROR: str(error),
                    HINT: "correct prefixes, topic or max_topics in "
                    f"[sinks.{self._sink}.messages]; revoke EXECUTE on {FUNCTION} from "
                    "roles that should write none",
                },
                prefix=message.prefix[:_SHOWN],
            )


def stand_in(message: MessageOp) -> ReplicationOp:
    """Return an op in the place of a message: its table is the function's.

    What is parked of it, and what an error says, has a part of a long prefix.
    """
    table = Table(FUNCTION, message.prefix[:_NAMED], ())
    return ReplicationOp(
        Kind.INSERT, table, message.lsn, 0, commit_time=message.commit_time
    )
