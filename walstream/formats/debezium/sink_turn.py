"""The clock and the transaction's origin, the same for all tables of a sink.

The loop sets the clock once a turn. It is in each record as the time of processing,
which alone differs when a transaction is sent again.
"""

from walstream.formats.debezium.json_text import json_text
from walstream.lsn import Lsn


class SinkTurn:
    """The turn of the loop in which records are written."""

    def __init__(self) -> None:
        self.nanoseconds = 0
        self.ending = ""  # of an envelope, from `ts_ms` on
        self.origin_name = ""
        self.origin_lsn: Lsn = 0
        self.origin = ""  # as fields of `source`
        self._lsn: Lsn = -1
        self._counts: dict[str, int] = {}
        self._numbered: dict[str, int] = {}
        self.begin(0)
        self.come_from("", 0)

    def begin(self, nanoseconds: int) -> None:
        """Set the clock: nanoseconds since 1970."""
        self.nanoseconds = nanoseconds
        millis, micros = nanoseconds // 1_000_000, nanoseconds // 1000
        self.ending = f'"ts_ms":{millis},"ts_us":{micros},"ts_ns":{nanoseconds}}}'

    def come_from(self, name: str, lsn: Lsn) -> None:
        """Set the origin of a transaction, before its first row; "": this server."""
        self.origin_name, self.origin_lsn = name, lsn
        origin, place = (json_text(name), str(lsn)) if name else ("null", "null")
        self.origin = f'"origin":{origin},"origin_lsn":{place}'

    def order(self, table: str, lsn: Lsn, seq_id: int) -> int:
        """Return which record of its table it is in the transaction, from 1.

        An op that is encoded again has the same number.
        """
        if lsn != self._lsn:
            self._lsn = lsn
            self._counts.clear()
            self._numbered.clear()
        if self._numbered.get(table) != seq_id:
            self._numbered[table] = seq_id
            self._counts[table] = self._counts.get(table, 0) + 1
        return self._counts[table]
