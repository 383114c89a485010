"""What the pipeline needs of the outside: a source, sinks, positions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from walstream.errors import WalstreamError
from walstream.lsn import Lsn
from walstream.op import ReplicationOp, Table
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
from walstream.telemetry.tally import Tally


@dataclass(frozen=True, slots=True)
class Position:
    """Where to resume, and what that belongs to: an LSN alone is no position."""

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
        """Take up to `limit` frames that are there; raise when the stream ended."""

    def confirm(self, lsn: Lsn) -> None:
        """Let the server forget everything before `lsn`. Never goes back."""

    def keep_alive(self, *, now: bool = False) -> None:
        """Send a status update when one is due, or at once."""

    def still_paused(self) -> None:
        """Note that nothing is read on purpose."""

    def fileno(self) -> int:
        """Return what to wait on for more frames."""


class Sink(Protocol):
    """Takes ops in order, reports each record's delivery to its transaction."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""

    def ready(self) -> bool:
        """Return whether `send` may be called; serve delivery reports on the way.

        Raises a WalstreamError when a delivery failed: nothing is sent after that.
        """

    @property
    def in_flight(self) -> int:
        """How much is under way: worth polling for."""

    def knows(self, table: Table) -> bool:
        """Return whether it knows where a table's ops go; look for that if not.

        Raises what keeps them from going anywhere.
        """

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Hand over one op: counted in the transaction now, delivered later.

        The op is taken in any case; False: no other before `ready`.
        """

    def close(self) -> None:
        """Give up what is in flight. Its deliveries are reported no more."""


class SinkTopic(Protocol):
    """A topic of a sink, as it was found."""

    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> int: ...

    @property
    def limit(self) -> int:
        """The bytes of the largest record that it takes."""

    @property
    def advice(self) -> str:
        """What takes a larger one; "": its own configuration."""

    @property
    def layout(self) -> int:
        """How often its keys moved to other partitions, from 1."""

    def written(self) -> None:
        """Note that somebody else of this source wrote to it."""


class NamedSink(Sink, Protocol):
    """A sink that was configured: it has a name, and tells how it goes."""

    @property
    def waiting(self) -> bool:
        """Return whether it waits for its target, or for one of its handlers."""

    @property
    def handler_waits(self) -> bool:
        """Return whether it is one of its handlers that cannot go on."""

    @property
    def outage(self) -> Outage | None:
        """Why its target does not answer, as far as it is known."""

    @property
    def topics(self) -> Mapping[str, SinkTopic]:
        """Its topics as they were found, by name."""

    @property
    def tally(self) -> Tally: ...

    def put(
        self,
        key: bytes,
        value: bytes,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        """Send a finished record where the records of `op` go."""


class Membership(Protocol):
    """Who sees to it that a source's sinks leave and come; nothing blocks."""

    @property
    def whole(self) -> bool:
        """Return whether no sink is away, or on its way."""

    def release(self, sink: Sink, resume: Lsn, why: str) -> None:
        """Close a sink that was sent its last; have somebody go on from `resume`."""

    def gone(self, sink: Sink) -> bool:
        """Return whether its `resume` is somebody else's to keep now."""

    def arriving(self, place: Lsn) -> Sink | None:
        """Return a sink that is to be sent everything from `place` on; None: nobody."""


class Companion(Protocol):
    """What is asked of the database beside the stream; nothing blocks."""

    def keys(self, relation: Relation, xid: int, place: Place, /) -> KeyHistory | None:
        """Find a relation's keys as of a transaction; None: ask again.

        All from `place` on is still to come: from there a change counts.
        """

    def complete(self, op: ReplicationOp, /) -> bool:
        """Fill what a key change would lose for ever; False: ask again."""

    def tick(self, *, paused: bool) -> None:
        """Do what is due; raise when the stream cannot be whole or has to end."""


class OldRows(Protocol):
    """Rows that were there before, to come in between transactions; nothing blocks."""

    @property
    def note(self) -> Callable[[ReplicationOp], None] | None:
        """What is to be told of every op until it is asked again; None: of none."""

    def rows(
        self, place: Lsn, known: Callable[[Table], bool]
    ) -> Sequence[ReplicationOp]:
        """Return those that may go in where a transaction ended; none: not now.

        Of tables that are `known`: else it would be heard only later that a sink takes
        some row never, when it is too late to leave it out.
        """

    def sent(self, transaction: Shares) -> None:
        """Note that all of the last went out, counted in this transaction."""

    def refused(self, error: WalstreamError) -> None:
        """Note that a sink will never take one of the last."""


class StateStore(StoredDocuments, Protocol):
    """Small documents by name, durable when a call returns."""

    def write(self, documents: Entries) -> None:
        """Write all or none, with fsync; None deletes."""

    def store(self, position: Position, beside: Entries | None = None) -> None:
        """Write the position; documents `beside` it share its fsync.

        A `resume` below the stored one is an error.
        """
