"""Does a walk's acts on a real database under walstream, and looks at the topics."""

import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psycopg
from psycopg.conninfo import make_conninfo

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.fork import ForkServer
from tests.support.programs.walstream import SOURCE
from tests.support.walk.act import Act, Kind
from tests.support.walk.changes import ELSEWHERE, PUBLICATION, ROLE, creation, mended
from tests.support.walk.forked_walstream import ForkedWalstream
from tests.support.walk.oracle import Change, Fold, Order, Sight, look, now
from tests.support.walk.patch import WATCH_S, sitecustomize
from tests.support.walk.tables import BY_CODE, WRITERS
from walstream.lsn import parse
from walstream.pipeline.root_key import ROOTS, RootKeys
from walstream.postgres import partition_root as roots
from walstream.postgres.publication_memory import PUBLICATIONS, StoredPublication
from walstream.state.store import LmdbStore

_NOTICED_S: Final = 30.0  # many of these looks: a machine may be slow
_PATIENCE_S: Final = 120.0  # with a start, or with all that waits to be sent

Leaf = tuple[str, str, str]
"""The oids of root and leaf, and the leaf's name."""


class WalkFailed(AssertionError):
    """The promise does not hold: `what` sorts it, for shrinking."""

    def __init__(self, what: str, told: str, steps: int = 0) -> None:
        super().__init__(f"{what}: {told}")
        self.what = what
        self.steps = steps


@dataclass(frozen=True)
class Made:
    """What a walk is done on."""

    mode: str  # of the publication
    setup: Sequence[str]
    reread: bool = False  # on_publication_change = "reread"
    hole: str = ""


class Runner:
    """One database, its walstream and its topics, from the first act to the last."""

    def __init__(
        self, server: PostgresServer, kafka: KafkaServer, folder: Path, made: Made
    ) -> None:
        self._server, self._kafka, self._folder = server, kafka, folder
        self._made, self._mode = made, made.mode
        self._stack = ExitStack()
        self._fold, self._order = Fold(), Order()
        self._up = False  # as far as the walk knows
        self._suspects: dict[str, float] = {}
        self._leaves: set[Leaf] = set()  # that walstream has seen
        self.counters: dict[str, int] = {}

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _open(self) -> None:
        enter = self._stack.enter_context
        self._database = enter(temporary_database(self._server))
        self.role = enter(_role(self._database))
        self._sessions = [
            enter(
                psycopg.connect(
                    self._database.dsn, autocommit=True, prepare_threshold=None
                )
            )
            for _ in range(WRITERS)
        ]
        self._eye = enter(
            psycopg.connect(self._database.dsn, autocommit=True, prepare_threshold=None)
        )
        # acts that were taken out by shrinking may leave a transaction open
        for one in (*self._sessions, self._eye):
            one.execute("SET lock_timeout = '20s'")
        for sql in self._made.setup:
            self._eye.execute(sql.replace(ROLE, self.role).encode())
        prefix = f"walk_{self._database.name}."
        self._reader = enter(Reader(self._kafka.bootstrap, prefix))
        patches = self._folder / "patches"
        patches.mkdir(parents=True, exist_ok=True)
        (patches / "sitecustomize.py").write_text(
            sitecustomize(self._made.hole), "utf-8"
        )
        self._forks = enter(ForkServer({"PYTHONPATH": str(patches)}))
        self._walstream = ForkedWalstream(
            make_conninfo(self._database.dsn, user=self.role),
            self._kafka.bootstrap,
            self._folder / self._database.name,
            prefix,
            source={
                "tables": ["public.*"] if self._mode == "patterns" else [],
                "on_publication_change": "reread" if self._made.reread else "stop",
            },
            sink={
                "topic": f"{prefix}all",
                "topic_partitions": 3,
                "topics": {
                    f"*.{BY_CODE}*": {
                        "name": f"{prefix}all",
                        "partition_key": ["code"],
                    }
                },
            },
        )
        self._walstream.server = self._forks
        self._stack.callback(self._walstream.close)
        self._begin()

    def _begin(self) -> None:
        self._walstream.start().until("streaming", _PATIENCE_S)
        self._up = True
        self._restart_oracle()

    def _restart_oracle(self) -> None:
        self._leaves = self._attached()
        self._fold.restart(now(self._eye), look(self._eye))
        self._order.restart()
        self._suspects.clear()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def do(self, act: Act) -> None:
        """Do one act; what the promise does not allow raises WalkFailed."""
        match act.kind:
            case Kind.START:
                if not self._up:
                    self._walstream.start()
                    self._up = True
            case Kind.STOP | Kind.KILL:
                self._end(kill=act.kind is Kind.KILL)
            case Kind.FREEZE | Kind.THAW:
                self._freeze(thaw=act.kind is Kind.THAW)
            case Kind.CHECK:
                self._check()
            case Kind.SCHEMA:
                self._change(act)
            case Kind.MIGRATION:
                self._migrate(act)
            case _:
                self._execute(act)

    def _freeze(self, *, thaw: bool = False) -> None:
        if self._up and self._walstream.running:
            number = signal.SIGCONT if thaw else signal.SIGSTOP
            with suppress(ProcessLookupError):  # it just ended
                os.killpg(self._walstream.pid, number)

    def _change(self, act: Act) -> None:
        before, there = look(self._eye), self._attached()
        self._execute(act)
        change = Change(now(self._eye), before, look(self._eye))
        for root, leaf, name in self._leaves & (there ^ self._attached()):
            attached = (root, leaf, name) not in there
            change.attached, change.detached = (name, "") if attached else ("", name)
        self._fold.change(change)

    def _migrate(self, act: Act) -> None:
        """Write rows and change the schema in one transaction, or in none."""
        session = self._sessions[act.session]
        changes: list[tuple[str, Sight, Sight]] = []
        try:
            with session.transaction():
                for line in act.sql.replace(ROLE, self.role).splitlines():
                    if line.startswith(("INSERT", "UPDATE", "DELETE")):
                        self._write_within(session, line)
                        continue
                    before = look(session)
                    tick = session.execute(
                        "INSERT INTO ticks DEFAULT VALUES RETURNING id::text"
                    ).fetchone()
                    assert tick is not None
                    session.execute(line.encode())
                    changes.append((tick[0], before, look(session)))
        except psycopg.Error as error:
            self._count(f"refused {error.sqlstate}")
            changes.clear()
        end = now(self._eye)
        for made, before, after in changes:
            self._fold.change(Change(end, before, after, made))
        self._suspect(act)

    def _write_within(self, session: psycopg.Connection[Any], line: str) -> None:
        """Write rows in a subtransaction, so that a refusal ends that alone."""
        try:
            with session.transaction():
                session.execute(line.encode())
        except psycopg.Error as error:
            self._count(f"refused {error.sqlstate}")

    def _execute(self, act: Act) -> None:
        session = self._sessions[act.session]
        try:
            session.execute(act.sql.replace(ROLE, self.role).encode())
        except psycopg.Error as error:
            self._count(f"refused {error.sqlstate}")
            session.execute("ROLLBACK")
        self._suspect(act)

    def _suspect(self, act: Act) -> None:
        for name in act.names:
            self._suspects[name] = time.monotonic()

    def _count(self, what: str) -> None:
        self.counters[what] = self.counters.get(what, 0) + 1

    def _end(self, *, kill: bool) -> None:
        if not self._up:
            return
        if not self._walstream.running:
            self._judge([])
        self._freeze(thaw=True)
        if kill:
            self._walstream.kill()
        elif self._walstream.terminate(_PATIENCE_S) not in (
            0,
            -signal.SIGTERM,
        ):  # at its start
            self._judge([])
            return  # cured, it runs again
        self._up = False
        self._count("kills" if kill else "stops")

    def _check(self) -> None:
        """Wait until all is sent, and compare; or judge the stop."""
        if not self._up:
            return
        self._freeze(thaw=True)
        if not self._caught_up():
            self._judge([])
            return
        found = self._differences()
        if not found:
            self._agreed()
            return
        wait_s = _PATIENCE_S if self._made.reread else _NOTICED_S
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline and self._walstream.running:
            time.sleep(0.05)
            if self._made.reread and not (found := self._differences()):
                self._count("rereads")
                self._agreed()
                return
        if self._walstream.running:
            some = "\n".join(f"{table}: {what}" for table, what in found[:4])
            raise WalkFailed(
                "silence",
                f"{some}\n({len(found)} differences in"
                f" {sorted({one for one, _ in found})}); walstream streams on:\n"
                f"{self._said()}",
            )
        self._judge(found)

    def _agreed(self) -> None:
        self._await_look()
        self._fold.looked()
        self._count("checks")
        self._forget_suspects()

    def _await_look(self) -> None:
        """Wait until it has looked at the publications, if it runs on."""
        folder, deadline = self._walstream.state, time.monotonic() + _PATIENCE_S
        wanted = self._members()
        while self._walstream.running and time.monotonic() < deadline:
            with LmdbStore.open_read_only(folder) as positions:
                found = PUBLICATIONS.read(positions) if positions else None
                told = positions is None or self._roots_told(positions)
            seen = (found or {}).values()
            known = {oid for one in seen for oid in one.tables}
            if wanted <= known and told and self._leaves_seen(seen):
                return
            time.sleep(0.02)
        if self._walstream.running:
            raise WalkFailed(
                "unseen",
                f"published are {sorted(wanted)}, of which it has not seen"
                f" {sorted(wanted - known)}; it knows all roots: {told}",
            )

    def _leaves_seen(self, seen: Iterable[StoredPublication]) -> bool:
        """Tell whether it has seen all leaves of the roots that are published."""
        known = {
            str(root): {str(leaf) for leaf in leaves}
            for one in seen
            for root, leaves in one.leaves.items()
        }
        attached = self._attached()
        self._leaves |= attached
        return all(leaf in known.get(root, {leaf}) for root, leaf, _ in attached)

    def _attached(self) -> set[Leaf]:
        rows = self._eye.execute(
            "SELECT inhparent::text, inhrelid::text, c.relname::text"
            " FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid"
            " WHERE c.relkind = 'r'"
        ).fetchall()
        return set(rows)

    def _roots_told(self, positions: LmdbStore) -> bool:
        """Tell whether the keys that it keeps of roots are the catalog's."""
        found = roots.look(self._eye, [int(oid) for oid in ROOTS.keys(positions)])
        kept = {
            oid: RootKeys(ROOTS.of(str(oid)).read(positions) or ()) for oid in found
        }
        return not any(kept[oid].lacks(key) for oid, key in found.items())

    def _members(self) -> set[int]:
        rows = self._eye.execute("SELECT prrelid::bigint FROM pg_publication_rel")
        return {oid for (oid,) in rows.fetchall()}

    def _forget_suspects(self) -> None:
        """Drop what is long ago: since all agrees, it is no reason for a stop."""
        old = time.monotonic() - 3 * WATCH_S
        self._suspects = {k: at for k, at in self._suspects.items() if at > old}

    def _caught_up(self) -> bool:
        """Wait until all that is committed is confirmed; False: walstream ended."""
        self._eye.execute("INSERT INTO ticks DEFAULT VALUES")
        target = now(self._eye)
        deadline = time.monotonic() + _PATIENCE_S
        while self._walstream.running:
            row = self._eye.execute(
                "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
                " WHERE slot_name = %s",
                (self._walstream.slot,),
            ).fetchone()
            if row is not None and row[0] and parse(row[0]) >= target:
                return True
            if "Traceback" in self._walstream.text:
                raise WalkFailed("crash", self._said())
            if time.monotonic() > deadline:
                raise WalkFailed("hang", self._said())
            time.sleep(0.01)
        return False

    def _differences(self) -> list[tuple[str, str]]:
        records = self._reader.read()
        for problem in self._order.take(records):
            raise WalkFailed("order", problem)
        self._fold.take(records)
        sight = look(self._eye)
        inserted = self._eye.execute(
            "SELECT schemaname || '.' || tablename FROM pg_publication_tables"
            " WHERE pubname = %s",
            (f"{PUBLICATION}_insert",),
        ).fetchall()
        for seen in sight.values():
            lost = not seen.key or (seen.name,) in inserted
            if seen.name in self._fold.unknown and not lost:
                self._fold.know(seen)
        return self._fold.differences(sight)

    def _judge(self, found: list[tuple[str, str]]) -> None:
        """Claim that a stop names what is concerned; cure it as an operator would."""
        code = self._walstream.wait(_PATIENCE_S)
        said = self._said()
        if code not in (3, 4):
            raise WalkFailed("crash", f"exit code {code}\n{said}")
        concerned = set(self._suspects)
        if found:
            concerned &= {table.rpartition(".")[2] for table, _ in found} | {
                PUBLICATION
            }
        if not any(name in said for name in concerned):
            raise WalkFailed(
                "unfounded",
                f"exit code {code}; concerned are {sorted(concerned)}, said is\n{said}",
            )
        self._count(f"stops by itself ({code})")
        self._cure(reset="positions reset" in said)

    def _said(self) -> str:
        """Give what it said of trouble."""
        text = self._walstream.text
        if "Traceback" in text:
            return text[-6000:]
        entries = [one for one in self._walstream.log if one.get("level") != "info"]
        return "\n".join(str(one) for one in entries)[-6000:]

    def _cure(self, *, reset: bool) -> None:
        """Do what the message says, and have the readers read all again after a gap."""
        self._up = False
        for session in self._sessions:  # whose locks would be waited for
            session.execute("ROLLBACK")
        parts = self._eye.execute(
            "SELECT c.oid::regclass::text, c.relkind::text FROM pg_class c"
            " JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relkind IN ('r', 'p') AND nspname = 'public' ORDER BY 1"
        ).fetchall()
        for sql in mended(
            self.role, [(f"public.{n.removeprefix('public.')}", k) for n, k in parts]
        ):
            self._repair(sql)
        if not reset:
            self._walstream.start()
            self._up = True
            self._suspects = {PUBLICATION: time.monotonic(), **self._suspects}
            return
        self._count("resets")
        self._eye.execute(
            f"DROP PUBLICATION IF EXISTS {PUBLICATION}, {PUBLICATION}_insert"
        )
        if self._mode != "patterns":
            roots = self._eye.execute(
                "SELECT c.oid::regclass::text FROM pg_class c"
                " WHERE relkind IN ('r', 'p') AND NOT relispartition"
                " AND relnamespace = 'public'::regnamespace"
                " AND relname !~ '^(east|west|north)' ORDER BY 1"
            ).fetchall()
            self._eye.execute(creation(self._mode, [one for (one,) in roots]).encode())
        configuration = str(self._walstream.configuration)
        log = self._folder / "reset.log"
        verb = ("positions", "reset", SOURCE, "--yes", "-c", configuration)
        if self._forks.start(*verb, stdout=log).wait(_PATIENCE_S):
            raise WalkFailed("reset", log.read_text("utf-8"))
        self._begin()

    def _repair(self, sql: str) -> None:
        before = look(self._eye)
        try:
            self._eye.execute(sql.encode())
        except psycopg.Error:
            return
        after = look(self._eye)
        if after != before:
            self._fold.change(Change(now(self._eye), before, after))


@contextmanager
def _role(database: Database) -> Iterator[str]:
    """Make walstream's role and the tables' owner, whose rights it has."""
    role = f"walker_{database.name.removeprefix('test_')}"
    database.execute(
        f"CREATE ROLE {role}_owner; CREATE ROLE {role} LOGIN REPLICATION IN ROLE"
        f" {role}_owner; GRANT CREATE ON DATABASE {database.name} TO {role}_owner;"
        f"GRANT ALL ON SCHEMA public TO {role}_owner; CREATE SCHEMA {ELSEWHERE}"
        f" AUTHORIZATION {role}_owner"
    )
    try:
        yield role
    finally:
        for sql in (
            f"REASSIGN OWNED BY {role}_owner TO CURRENT_USER",
            f"DROP OWNED BY {role}, {role}_owner",
            f"DROP ROLE {role}",
            f"DROP ROLE {role}_owner",
        ):
            database.execute(sql)
