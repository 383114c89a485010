"""One seed's acts, done to a simulated and a real PostgreSQL, and what differs."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.simulation.real.acts import Act, Read
from tests.simulation.real.client import Client
from tests.simulation.real.history import Places, Teller
from tests.simulation.real.postgres import PUBLICATION, Real
from tests.simulation.real.simulated import Simulated
from tests.simulation.real.statements import StatementWriter, create
from tests.support.deadline import within
from walstream.lsn import Lsn
from walstream.postgres.slot import Slot
from walstream.postgres.stream import start_command

_HEARD_S: Final = 30.0


class Differs(AssertionError):
    """The simulation is not as the real server is."""


@dataclass
class Side:
    """A server, what a reader of all that it writes was told, and what is confirmed."""

    server: Any
    prefix: str
    places: Places = field(default_factory=Places)
    everything: list[str] = field(default_factory=list)
    xids: dict[str, int] = field(default_factory=dict)
    # how many transactions were below what was confirmed, each time
    were_confirmed: set[str] = field(default_factory=lambda: {"0"})

    def __post_init__(self) -> None:
        self._whole: tuple[Client, Teller] | None = None

    def name(self, slot: str) -> str:
        return f"{self.prefix}_{slot}"

    def start(self, slot: str, at: Lsn, *, messages: bool) -> Client:
        command = start_command(self.name(slot), at, [PUBLICATION], messages=messages)
        client: Client = self.server.start(command)
        return client

    def catch_up(self) -> None:
        """Read all that was written; the first to do so gives transactions numbers."""
        if self._whole is None:
            client = self.start("whole", 0, messages=True)
            self._whole = client, Teller(self.places, live=True)
        client, teller = self._whole
        self.everything += teller.tell(client.read(self.server.end))

    def lose(self) -> None:
        """Forget the reader, of which a crash was the end."""
        self._whole = None

    def slot(self, slot: str) -> Slot | None:
        found: Slot | None = self.server.slot(self.name(slot))
        return found

    def confirmed(self, slot: str = "main") -> str:
        found = self.slot(slot)
        assert found is not None
        return self.places.of(found.confirmed_flush_lsn or 0)


@dataclass
class Comparison:
    """Both servers; each act is done to one after the other."""

    simulated: Simulated
    real: Real
    prefix: str
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model = Side(self.simulated, self.prefix)
        self.truth = Side(self.real, self.prefix)
        self.real.establish(self.simulated.statements(create))
        for side in (self.model, self.truth):
            for slot in ("whole", "main"):
                side.server.create(side.name(slot))

    def run(self, acts: list[Act]) -> None:
        """Do them all. Raises Differs at the first difference."""
        for act in acts:
            self.done.append(f"{act.kind} {act.number} {act.read or ''}")
            do: Callable[[Act], None] = getattr(self, f"_{act.kind.replace(' ', '_')}")
            do(act)
        self._same("tables", self.simulated.rows(), self.real.rows())
        self._catch_up()

    def _same(self, what: str, model: object, truth: object) -> None:
        if model != truth:
            done = "\n  ".join(self.done)
            raise Differs(f"{what}\n{difference(model, truth)}\nafter\n  {done}")

    def _catch_up(self) -> None:
        for side in (self.model, self.truth):
            side.catch_up()
        self._same("stream", self.model.everything, self.truth.everything)

    def _written(
        self, done: tuple[int, StatementWriter]
    ) -> tuple[int, StatementWriter]:
        self.done += [f"  {one}" for one in done[1].statements]
        return done

    # acts

    def _commit(self, act: Act) -> None:
        xid, writer = self._written(self.simulated.commit(act.number))
        session = self.real.take(act.number)
        self.real.write(session, writer)
        self._number(xid, self.real.end_of(session, "COMMIT"))

    def _pair(self, act: Act) -> None:
        first, second = act.number, act.number ^ 0x5A5A5A5A
        xid, writer = self._written(self.simulated.commit(first))
        other_xid, other_writer = self._written(self.simulated.commit(second))
        session, other = self.real.take(first), self.real.take(second)
        together = not writer.touched & other_writer.touched
        if together:
            self.real.write(other, other_writer)
        self.real.write(session, writer)
        self._number(xid, self.real.end_of(session, "COMMIT"))
        if not together:
            self.real.write(other, other_writer)
        self._number(other_xid, self.real.end_of(other, "COMMIT"))

    def _abort(self, act: Act) -> None:
        xid, writer = self._written(self.simulated.abort(act.number))
        session = self.real._connect()
        session.execute("BEGIN")
        self.real.write(session, writer)
        self._number(xid, self.real.end_of(session, "ROLLBACK"))

    def _begin(self, _act: Act) -> None:
        self._number(self.simulated.server.begin(), self.real.begin())

    def _number(self, model: int, truth: int) -> None:
        """Note a transaction's numbers, if it has one: without writing it has none."""
        if truth:
            self.model.xids[str(model)] = model
            self.truth.xids[str(model)] = truth

    def _roll_back(self, _act: Act) -> None:
        self.simulated.server.roll_back()
        self.real.roll_back()

    def _say(self, _act: Act) -> None:
        self.simulated.server.say()
        self.real.say()

    def _grow(self, _act: Act) -> None:
        self.simulated.server.grow()
        self.real.grow()

    def _facts(self, _act: Act) -> None:
        self._same(
            "facts",
            *(
                {name: replace(one, oid=0) for name, one in side.server.facts().items()}
                for side in (self.model, self.truth)
            ),
        )
        self._same(
            "slot", *(_told(side.slot("main")) for side in (self.model, self.truth))
        )

    def _snapshot(self, _act: Act) -> None:
        seen = []
        for side in (self.model, self.truth):
            snapshot = side.server.snapshot()
            seen.append({name: snapshot.sees(xid) for name, xid in side.xids.items()})
        self._same("snapshot", *seen)

    def _busy(self, _act: Act) -> None:
        """See that a slot that is read is nobody else's."""
        tried = [_tried(side) for side in (self.model, self.truth)]
        self._same("a slot that is read", *tried)

    def _copy(self, _act: Act) -> None:
        self._catch_up()
        told = []
        for side in (self.model, self.truth):
            side.server.copy(side.name("main"), side.name("copy"))
            at = side.confirmed("copy")
            client = side.start("copy", 0, messages=True)
            lines = Teller(side.places).tell(client.read(side.server.end))
            client.end()
            side.server.cut(client, "the protocol's")
            side.server.drop(side.name("copy"))
            told.append([at, *lines])
        self._same("copied slot", *told)

    def _read(self, act: Act) -> None:
        assert act.read is not None
        self._catch_up()
        self._same(
            "told again",
            *(
                _conversation(side, act.read, act.number)
                for side in (self.model, self.truth)
            ),
        )

    def _checkpoint(self, _act: Act) -> None:
        self.simulated.server.checkpoint()
        self.real.checkpoint()

    def _crash(self, _act: Act) -> None:
        """See that a slot goes back to something that was confirmed once."""
        self._catch_up()
        for side in (self.model, self.truth):
            side.lose()
            side.server.crash()
            side.everything.clear()
            if side.confirmed() not in side.were_confirmed:
                raise Differs(
                    f"{side.confirmed()} after a crash, of {side.were_confirmed}"
                    f" after {self.done}"
                )
        # when a slot was saved is the server's business: both go on from there
        count = int(self.truth.confirmed())
        slot = self.simulated.server.slots[self.model.name("main")]
        first = self.simulated.begin
        slot.confirmed = self.model.places.ends[count - 1] if count else first


def _tried(side: Side) -> list[str]:
    """Do what cannot be done while a slot is read, or is not there."""
    client = side.start("main", 0, messages=False)
    tried = [
        _raised(lambda: side.start("main", 0, messages=False)),
        _raised(lambda: side.server.drop(side.name("main"))),
        _raised(lambda: side.start("absent", 0, messages=False)),
        _raised(lambda: side.server.drop(side.name("absent"))),
        _told(side.slot("main")),
    ]
    client.end()
    side.server.cut(client, "the protocol's")
    return tried


def _conversation(side: Side, read: Read, number: int) -> list[str]:
    """Read the slot to its end, confirm, and end."""
    ends = side.places.ends
    at = ends[read.at] if 0 < read.at < len(ends) else 0
    client = side.start("main", at, messages=read.messages)
    told = Teller(side.places).tell(client.read(side.server.end))
    lsn = _to_confirm(side, read.confirmed, number, client)
    before = side.slot("main")
    assert before is not None
    if lsn:
        client.status(flush=lsn)
        if lsn > (before.confirmed_flush_lsn or 0):
            if not within(lambda: _confirmed(side) == lsn, _HEARD_S):
                raise Differs(f"{lsn:X} is never confirmed: {side.slot('main')}")
        else:
            client.read(side.server.end)  # it was heard
    if read.ended == "the protocol's":
        client.end()
    side.server.cut(client, read.ended)
    side.were_confirmed.add(side.confirmed())
    return [*told, f"confirmed {side.confirmed()}", _told(side.slot("main"))]


def _confirmed(side: Side) -> Lsn:
    if isinstance(side.server, Simulated):
        side.server.rest()
    found = side.slot("main")
    return (found.confirmed_flush_lsn or 0) if found else 0


def _to_confirm(side: Side, what: str, number: int, client: Client) -> Lsn:
    places = side.places
    if what == "told":
        return client.told
    if what == "nothing" or not places.ends:
        return 0
    at = number % len(places.ends)
    if what == "commit":
        return list(places.commits)[at]
    return places.ends[0 if what == "below" else at]


def _told(slot: Slot | None) -> str:
    if slot is None:
        return "no slot"
    read = "read" if slot.active_pid is not None else "free"
    return f"{slot.kind} {slot.plugin} {slot.wal_status} {slot.lost} {read}"


def _raised(act: Callable[[], object]) -> str:
    try:
        act()
    except Exception as error:  # noqa: BLE001 - which one is the question
        return type(error).__name__
    return "nothing"


def difference(model: object, truth: object) -> str:
    """Show what only the simulated server gave (-), and only the real one (+)."""
    first, second = (
        list(map(str, one)) if isinstance(one, list) else [str(one)]
        for one in (model, truth)
    )
    told = difflib.unified_diff(first, second, "simulated", "real", lineterm="")
    return "\n".join(told)
