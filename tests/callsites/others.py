"""Scenarios of a detached sink, a backfill, polled tables, a chain and a consumer."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, ClassVar, Final, Self

import psycopg

from tests.callsites.scenario import MEMBER, Scenario, Scene, claim
from tests.callsites.streams import Stream
from tests.support.fixtures.postgres import Database
from tests.support.loads.keyed import TABLE, Load
from tests.support.loads.op_record import ITEM, Feed
from tests.support.oracles.op_order import assert_rewind_and_continue, missing
from tests.support.oracles.table_state import (
    Rows,
    by_arrival,
    by_position,
    in_place,
    rows_of,
)
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.polled_source import Polled
from tests.support.programs.relay import Chain, stored
from tests.support.programs.table_read import postgres_url
from tests.support.programs.walstream import Walstream
from walstream.errors import WalstreamError
from walstream.formats.row import decode as decode_row
from walstream.op import Kind, ReplicationOp
from walstream.sources.postgres.detached.detached_sink import AWAY, DETACHED
from walstream.state.store import LmdbStore

_OTHER: Final = "other"
_SMALL, _ROOMY = "3000", "300000"  # bytes that its topic takes
_ENDS_S: Final = 60.0


class Detach(Stream):
    """A sink leaves the stream, catches up apart, and comes back."""

    name: ClassVar[str] = "detach"
    size: ClassVar[int] = 100

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        prefix = f"other_{scene.prefix}"
        self._topic = f"{prefix}public.load"
        self._admin = TopicAdmin(scene.bootstrap)
        self._second = scene.stack.enter_context(Reader(scene.bootstrap, prefix))

    def program(self) -> Walstream:
        other = {
            "topic": f"other_{self.scene.prefix}{{schema}}.{{table}}",
            "topic_partitions": 2,
        }
        return Walstream(
            self.database.dsn,
            self.scene.bootstrap,
            self.scene.folder,
            self.scene.prefix,
            sink={"topic_partitions": 2},
            others={_OTHER: other},
        )

    def act(self) -> None:
        self.begin()
        self.batch()
        self.service.until(lambda: self._second.topics(), "the other topic is there")
        self._admin.configure(self._topic, "max.message.bytes", _SMALL)
        self.scene.tap.arm()
        self.database.execute(
            # what a broker measures is compressed
            "INSERT INTO load SELECT -1, 0, string_agg(md5(random()::text), '')"
            " FROM generate_series(1, 600)"
        )
        self.wait(lambda: self._phase() == AWAY, "the sink is away")
        self.batch()
        self._admin.configure(self._topic, "max.message.bytes", _ROOMY)
        self.wait(lambda: not self._phase(), "the sink is back")
        if not self.struck:
            self.batch()
            self.stop()

    def settle(self) -> None:
        self._admin.configure(self._topic, "max.message.bytes", _ROOMY)
        super().settle()
        self.compare(self._second)

    def whole(self) -> bool:
        if not super().whole():
            return False
        if self.scene.tap.armed:
            return True
        assert self.oracle is not None
        return (
            not missing(self.oracle.names(), self._second.read())
            and not self._phase()
            and not self._copies()
        )

    def _phase(self) -> str:
        """Read in the state how it is with the sink; "" where it is in the stream."""
        try:
            with LmdbStore.open_read_only(self.walstream.state) as positions:
                note = DETACHED.of(_OTHER).read(positions) if positions else None
        except WalstreamError:
            return "being written"
        return note.phase if note else ""

    def _copies(self) -> int:
        query = (
            "SELECT FROM pg_replication_slots"
            " WHERE starts_with(slot_name, %s) AND slot_name <> %s"
        )
        mine = self.walstream.slot
        return len(self.database.fetch(query, mine, mine))


class Backfill(Scenario):
    """Rows of before by the driver, while a writer goes on; then the stream."""

    name: ClassVar[str] = "backfill"
    fill: ClassVar[str] = (
        "ALTER TABLE load ALTER note SET STORAGE EXTERNAL;"
        " INSERT INTO load SELECT w * 1000000 + i, 0, repeat(md5(i::text), 100)"
        " FROM generate_series(0, 1) AS w, generate_series(0, 199) AS i;"
        " CREATE TABLE small (id int PRIMARY KEY, v text);"
        " INSERT INTO small SELECT i, i FROM generate_series(1, 10) AS i"
    )

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._database = scene.database()
        self._database.execute(f"{TABLE}; {self.fill}")
        self._walstream = Walstream(
            self._database.dsn,
            scene.bootstrap,
            scene.folder,
            scene.prefix,
            source={"backfill": "initial"},
            sink={"topic_partitions": 2},
            top={"spark": {}},
        )
        self.service = scene.service(self._walstream)
        self._reader = scene.stack.enter_context(Reader(scene.bootstrap, scene.prefix))

    def act(self) -> None:
        self.scene.tap.arm()
        with Load(self._database.dsn, seed=5, writers=2, pause_s=0.05):
            self.service.start()
            self.wait(
                lambda: self._walstream.said("backfill ended"), "the backfill ends"
            )
        self.wait(self._agree, "all arrives")
        self.stop()

    def settle(self) -> None:
        self.service.tend()
        self._database.execute("INSERT INTO small SELECT max(id) + 1, '' FROM small")
        self.service.until(self._agree, "the topics are the tables")
        self.service.until(
            lambda: not self._walstream.running or self._walstream.said("streaming"),
            "it streams",
        )
        self.service.stop()
        records = self._reader.read()
        claim(self._agree(), "folded by position it is not the tables")
        claim(
            by_arrival(records) == self._rows(), "folded by arrival it is not, either"
        )
        in_place(records)

    def _agree(self) -> bool:
        return by_position(self._reader.read()) == self._rows()

    def _rows(self) -> Rows:
        return rows_of(self._database, "public.load", "public.small")


class Poll(Scenario):
    """Polled rows, of which some commit late and some never."""

    name: ClassVar[str] = "poll"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._database = scene.database()
        self._database.execute("CREATE TABLE t (id serial PRIMARY KEY, v text)")
        self._polled = Polled(
            postgres_url(self._database.dsn),
            scene.bootstrap,
            scene.folder,
            scene.prefix,
            sink={"topic_partitions": 2},
            top={"spark": {}},
            tables={"t": {}},
        )
        self.service = scene.service(self._polled)
        reader = Reader(scene.bootstrap, scene.prefix, decode_row)
        self._reader = scene.stack.enter_context(reader)

    def act(self) -> None:
        self._write()
        self.scene.tap.arm()
        self.service.start()
        self._arrive()
        for _ in range(2):
            self._write_late()
            self._arrive()
        self.stop()
        if not self.struck:
            self.service.start()
            self._write()
            self._arrive()
            self.stop()

    def settle(self) -> None:
        self.service.tend()
        self._write_late()
        self.service.until(self._whole, "all rows arrive")
        self.service.stop()
        rows = {one.op.data["id"]: one.op.data for one in self._records()}
        table = dict(self._database.fetch("SELECT id, v FROM t"))
        found = {key: row["v"] for key, row in rows.items()}
        claim(found == table, "the topic is not the table")

    def _write(self) -> None:
        self._database.execute(
            "INSERT INTO t (v) SELECT i FROM generate_series(1, 5) i"
        )

    def _write_late(self) -> None:
        """Commit a smaller key behind a greater one, and one never."""
        with psycopg.connect(self._database.dsn) as late:
            late.execute("INSERT INTO t (v) VALUES ('late')")
            self._write()
            self._arrive()
        with psycopg.connect(self._database.dsn) as never:
            never.execute("INSERT INTO t (v) VALUES ('never')")
            never.rollback()
        self._write()

    def _arrive(self) -> None:
        self.wait(self._whole, "all rows arrive")

    def _whole(self) -> bool:
        keys = {one.op.data["id"] for one in self._records()}
        return {key for (key,) in self._database.fetch("SELECT id FROM t")} <= keys

    def _records(self) -> Any:
        return self._reader.read()


class Relay(Scenario):
    """Records passed on from one topic to another."""

    name: ClassVar[str] = "chain"
    versions: ClassVar[tuple[int, ...]] = (18,)  # PostgreSQL has no part in it

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._topic = f"up_{scene.prefix}t"
        TopicAdmin(scene.bootstrap).create(self._topic, 2)
        self._feed = Feed(scene.bootstrap, self._topic)
        self._chain = Chain(
            scene.bootstrap,
            scene.bootstrap,
            scene.folder,
            scene.prefix,
            topics=[self._topic],
            source={"consumer": MEMBER},
        )
        self.service = scene.service(self._chain)
        enter = scene.stack.enter_context
        self._reader = enter(Reader(scene.bootstrap, f"{scene.prefix}copy."))
        self._upstream = enter(Reader(scene.bootstrap, self._topic))
        self._number = 0

    def act(self) -> None:
        self._write()
        self.scene.tap.arm()
        self.service.start()
        self._arrive()
        for _ in range(2):
            self._write()
            self._arrive()
        self.stop()
        if not self.struck:
            self.service.start()
            self._write()
            self._arrive()
            self.stop()

    def settle(self) -> None:
        self._never_ahead()
        self.service.tend()
        self._write()
        self.service.until(self._whole, "all records are passed on")
        self.service.stop()
        self._never_ahead()
        copies = self._reader.read()
        assert_rewind_and_continue(copies)
        shown = {(one.partition, one.key, one.value) for one in copies}
        expected = {(one.partition, one.key, one.value) for one in self._up()}
        claim(shown == expected, "what was passed on is not what came")

    def _write(self) -> None:
        for _ in range(20):
            self._number += 1
            self._feed.insert(self._number, self._number % 2)
        self._feed.flush()

    def _arrive(self) -> None:
        self.wait(self._whole, "all records are passed on")

    def _whole(self) -> bool:
        return not missing([one.name for one in self._up()], self._reader.read())

    def _up(self) -> Any:
        return self._upstream.read()

    def _never_ahead(self) -> None:
        """Claim that nothing below the group's offsets is missing in the copy."""
        group = f"{self.scene.prefix}group"
        offsets = stored(self.scene.bootstrap, group, self._topic, 2)
        below = [one.name for one in self._up() if one.offset < offsets[one.partition]]
        lost = missing(below, self._reader.read())
        claim(not lost, f"the group's offsets are ahead of {len(lost)} records")


class MirrorProgram:
    """`python -m consumer mirror` in a process group of its own."""

    def __init__(self, scene: Scene, target: str, topic: str) -> None:
        self.environment: Mapping[str, str] = {}
        self.program = Path(sys.executable)
        self._log_path = scene.folder / "mirror.log"
        self._command = [
            *("-m", "consumer", "mirror", topic),
            *("--group", topic, "--kafka", scene.bootstrap, "--target", target, "-v"),
            # a member that comes back is the same: no wait for its session's end
            *("-X", "group.instance.id=mirror", "-X", "fetch.wait.max.ms=10"),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def text(self) -> str:
        return self._log_path.read_text("utf-8", errors="replace")

    def start(self) -> Self:
        self._log = self._log_path.open("ab")
        self._process = subprocess.Popen(
            [self.program, *self._command],
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, **self.environment},
            start_new_session=True,
        )
        return self

    def wait(self, timeout_s: float = _ENDS_S) -> int:
        assert self._process is not None
        assert self._log is not None
        code = self._process.wait(timeout_s)
        self._log.close()
        return code

    def terminate(self, timeout_s: float = _ENDS_S) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def close(self) -> None:
        if self._process is not None and self.running:
            self._process.kill()
            self.wait()


class Consumer(Scenario):
    """A mirror of a topic with its state, both in PostgreSQL."""

    name: ClassVar[str] = "consumer"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._topic = f"{scene.prefix}item"
        TopicAdmin(scene.bootstrap).create(self._topic, 2)
        self._feed = Feed(scene.bootstrap, self._topic)
        self._target: Database = scene.database()
        self._target.execute("CREATE TABLE item (id int PRIMARY KEY, n bigint)")
        program = MirrorProgram(scene, self._target.dsn, self._topic)
        self.service = scene.service(program)
        self._number = 0
        self._rows: dict[int, int] = {}

    def act(self) -> None:
        self._write()
        self.scene.tap.arm()
        self.service.start()
        self._arrive()
        for _ in range(2):
            self._write()
            self._arrive()
        self.stop()
        if not self.struck:
            self.service.start()
            self._write()
            self._arrive()
            self.stop()

    def settle(self) -> None:
        self.service.tend()
        self._write()
        self.service.until(self._whole, "the mirror is the source")
        self.service.stop()
        claim(self._whole(), "the mirror is not the source")

    def _write(self) -> None:
        """Send inserts, and an update and a delete of rows of before."""
        for _ in range(20):
            self._number += 1
            self._put(Kind.INSERT, self._number, 0)
        self._put(Kind.UPDATE, self._number - 1, self._number)
        self._put(Kind.DELETE, self._number - 2, 0)
        self._feed.flush()

    def _put(self, kind: Kind, key: int, n: int) -> None:
        row: list[Any] = [str(key), str(n)]
        deletes = kind is Kind.DELETE
        op = ReplicationOp(
            kind,
            ITEM,
            self._feed.next_lsn(),
            0,
            old=row if deletes else None,
            new=None if deletes else row,
        )
        self._feed.send(op, key % 2, "app")
        if deletes:
            del self._rows[key]
        else:
            self._rows[key] = n

    def _arrive(self) -> None:
        self.wait(self._whole, "the mirror is the source")

    def _whole(self) -> bool:
        return dict(self._target.fetch("SELECT id, n FROM item")) == self._rows
