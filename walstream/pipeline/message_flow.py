"""Logical messages on their way to the sinks.

One inside of a transaction counts there. One outside of any was sent when the server
read it: in the ledgers it is a transaction of its own.
"""

from walstream.lsn import Lsn
from walstream.op import MessageOp, postgres_time
from walstream.pipeline.fanout import Fanout
from walstream.pipeline.pgoutput.messages import LogicalMessage
from walstream.telemetry import runtime


class MessageFlow:
    """Sender of the messages of one pipeline."""

    def __init__(self, fanout: Fanout) -> None:
        self._fanout = fanout
        self.room = True  # whether the sinks had some left behind the last one

    def within(
        self, message: LogicalMessage, lsn: Lsn, commit_time: int, xid: int
    ) -> None:
        """Send one in the open transaction, of commit LSN `lsn`."""
        self.room = self._fanout.send_message(
            MessageOp(
                message.prefix, message.content, lsn, message.lsn, xid, commit_time
            )
        )

    def alone(self, message: LogicalMessage) -> Lsn:
        """Send one that is in no transaction; return the position behind it.

        The server sends none below the position again, so one byte behind its LSN will
        do: where its WAL record ends is not told.
        """
        lsn, now = message.lsn, postgres_time(runtime.time())
        self._fanout.begin(lsn, now)
        self.room = self._fanout.send_message(
            MessageOp(message.prefix, message.content, lsn, lsn, None, now)
        )
        self._fanout.commit(lsn + 1)
        return lsn + 1
