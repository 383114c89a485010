"""Ports of the pipeline: a source, sinks, positions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from walstream.errors import WalstreamError
from walstream.lsn import Lsn
from walstream.op import MessageOp, ReplicationOp, Table
from walstream.pipeline.column_history import FactHistory, Labels
from walstream.pipeline.ledger import Shares, Transaction
from walstream.pipeline.outage import Outage
from walstream.pipeline.pgoutput.messages import Relation
from walstream.pipeline.root_key import Place
from walstream.pipeline.row_key import KeyHistory
from walstream.pipeline.state_document import (
    Entries,
    StateDocument,
    StoredDocuments,
)
from walstream.records.producer_record import ProducerRecord
from walstream.telemetry.tally import Tally


@dataclass(frozen=True, slots=True)
class Position:
    """Position to resume from, with its server and slot: an LSN alone is not enough."""

    resume: Lsn
    system_identifier: int
    timeline: int
    database: str
    slot: str


POSITION: Final = StateDocument("position", Position)
PREVIOUS_POSITION: Final = StateDocument("position.previous", Position)


class Source(Protocol):
    """A stream of CopyData frames ('w' and 'k'), which never blocks."""

    def read(self, limit: int) -> Sequence[bytes]:
        """Return up to `limit` arrived frames; raise when the stream ended."""

    def confirm(self, lsn: Lsn) -> None:
        """Confirm everything before `lsn` to the server. Never goes back."""

    def keep_alive(self, *, now: bool = False) -> None:
        """Send a status update when one is due, or at once."""

    def still_paused(self) -> None:
        """Note that the loop deliberately reads nothing."""

    def fileno(self) -> int:
        """Return the file descriptor to wait on for more frames."""


class Sink(Protocol):
    """Sink of ops, in order; reports each record's delivery to its transaction."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""

    def ready(self) -> bool:
        """Return whether `send` may be called; serve delivery reports on the way.

        Raises a WalstreamError when a delivery failed: nothing is sent after that.
        """

    @property
    def in_flight(self) -> int:
        """Count of records in flight."""

    def knows(self, table: Table) -> bool:
        """Return whether the topic of a table is known; look it up if not.

        Raises if they can go nowhere.
        """

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Send one op: counted in the transaction now, delivered later.

        The op is always taken; return False if the next has to wait for `ready`.
        """

    def close(self) -> None:
        """Drop what is in flight. Its deliveries are no longer reported."""


class MessageSink(Protocol):
    """A sink that also takes logical messages."""

    def send_message(self, message: MessageOp, transaction: Transaction) -> bool:
        """Send one as `send` does an op; one that it does not want is ignored."""


def send_message(sink: Sink, message: MessageOp, transaction: Transaction) -> bool:
    """Send a message to a sink that takes such; False: the next has to wait."""
    taker: MessageSink | None = _offering(sink, "send_message")
    return True if taker is None else taker.send_message(message, transaction)


class ResolvingSink(Protocol):
    """A sink that says in its target how far all is delivered."""

    def resolve(self, lsn: Lsn) -> None:
        """Note that each op of a transaction below `lsn` was delivered by it."""


def tell_delivered(sink: Sink, lsn: Lsn) -> None:
    """Pass its position to a sink that says how far it is."""
    told: ResolvingSink | None = _offering(sink, "resolve")
    if told is not None:
        told.resolve(lsn)


class ProvenSink(Protocol):
    """A sink that leaves out what its target has already."""

    def proven(self, resume: Lsn) -> Lsn:
        """Return how far the position may go, of what is delivered below `resume`.

        Raises Restart where the target has something else.
        """


def proven(sink: Sink, resume: Lsn) -> Lsn:
    """Return how far the position may go, as far as a sink knows."""
    knowing: ProvenSink | None = _offering(sink, "proven")
    return resume if knowing is None else knowing.proven(resume)


class FlushingSink(Protocol):
    """A sink that lets records wait for others, to send them together."""

    def flush(self) -> None:
        """Send what waits: no other came. What it raises is that of `ready`."""


def flush(sink: Sink) -> None:
    """Send what waits for others in a sink that lets records wait."""
    waiting: FlushingSink | None = _offering(sink, "flush")
    if waiting is not None:
        waiting.flush()


def _offering(sink: Sink, method: str) -> Any:
    """Return a sink that has this method, else None.

    To ask a protocol with isinstance costs as much as a whole turn of the loop.
    """
    return sink if hasattr(sink, method) else None


class SinkTopic(Protocol):
    """A topic of a sink, as it was found."""

    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> int: ...

    @property
    def limit(self) -> int:
        """Size of the largest record that it takes, in bytes."""

    @property
    def advice(self) -> str:
        """How to allow a larger record; "": by the topic's configuration."""

    @property
    def layout(self) -> int:
        """Number of its layout, from 1: it grows when keys move to other partitions."""

    def written(self) -> None:
        """Note that another producer of this source wrote to it."""

    def end_tails(self, until: Lsn) -> None:
        """Leave out nothing by what was sent to it from this LSN on."""


class NamedSink(Sink, Protocol):
    """A configured sink: it has a name and a status."""

    @property
    def waiting(self) -> bool:
        """Return whether it waits for its target, or for one of its handlers."""

    @property
    def handler_waits(self) -> bool:
        """Return whether it waits for one of its handlers."""

    @property
    def outage(self) -> Outage | None:
        """Reason why its target does not answer, as far as known."""

    @property
    def topics(self) -> Mapping[str, SinkTopic]:
        """Its topics by name, as found."""

    @property
    def tally(self) -> Tally: ...

    def put(
        self, record: ProducerRecord, op: ReplicationOp, transaction: Transaction
    ) -> None:
        """Send a record that was made of `op`.

        Raises HistoryError for a topic or a partition that it may not name.
        """


class Membership(Protocol):
    """Detaches and reattaches the sinks of a source; nothing blocks."""

    @property
    def whole(self) -> bool:
        """Return whether no sink is detached or returning."""

    def release(self, sink: Sink, resume: Lsn, why: str) -> None:
        """Close a sink that leaves; let another worker continue from `resume`."""

    def gone(self, sink: Sink) -> bool:
        """Return whether another worker keeps its `resume` now."""

    def arriving(self, place: Lsn) -> Sink | None:
        """Return a sink that gets everything from `place` on; None if none returns."""


class Companion(Protocol):
    """Queries to the database beside the stream; nothing blocks."""

    def keys(self, relation: Relation, xid: int, place: Place, /) -> KeyHistory | None:
        """Return a relation's keys as of a transaction; None: ask again.

        Nothing from `place` on was sent yet: a change counts from there.
        """

    def facts(
        self, relation: Relation, xid: int, place: Place, labels: Labels = (), /
    ) -> FactHistory | None:
        """Return what the catalog says of a relation's columns; None: ask again.

        It is empty where no sink's format asks for facts. A row from `place` on needs
        these `labels` of its enums.
        """

    def complete(self, op: ReplicationOp, /) -> bool:
        """Fill values that a key change would lose; return False to be asked again."""

    def tick(self, *, paused: bool) -> None:
        """Do what is due; raise if the stream may be incomplete or has to end."""


class OldRows(Protocol):
    """Existing rows, to send between transactions; nothing blocks."""

    @property
    def note(self) -> Callable[[ReplicationOp], None] | None:
        """Return a callback for every op until the next call; None: no op is needed."""

    def pending(self, most: int) -> Sequence[str]:
        """Name so many tables that have rows left; not those that failed."""

    def rows(
        self, place: Lsn, known: Callable[[Table], bool]
    ) -> Sequence[ReplicationOp]:
        """Return the rows that may go in at the end of a transaction; none: not now.

        Only of tables that are `known`: otherwise a sink might refuse a row when it is
        too late to leave it out.
        """

    def sent(self, transaction: Shares) -> None:
        """Note that the last rows were sent, counted in this transaction."""

    def refused(self, error: WalstreamError) -> None:
        """Note that a sink will never take one of the last rows."""


class StateStore(StoredDocuments, Protocol):
    """Store of small documents by name, durable when a call returns."""

    def write(self, documents: Entries) -> None:
        """Write all documents or none, with fsync; None deletes."""

    def store(self, position: Position, beside: Entries | None = None) -> None:
        """Write the position; documents in `beside` share its fsync.

        A `resume` below the stored one is an error.
        """
