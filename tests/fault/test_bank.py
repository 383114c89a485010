"""A mirror of whole transactions holds at every moment, whatever is killed."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psutil
import pytest

from tests.fault.test_kill_cycles import kill_worker
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import OwnKafka
from tests.support.fixtures.postgres import Database, OwnPostgres, temporary_database
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.loads.bank import NAMES, OPEN, TABLES, Transfers, Witness, contents
from tests.support.oracles.exact_dump import Gate, dump, dump_of_snapshot
from tests.support.programs.mirror import Mirror
from walstream.testing.servers.server import LocalServer

_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_KILLS = int(os.environ.get("WALSTREAM_TEST_KILLS") or 104)
_REACHED_S = 180.0
_END_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name LIKE 'consumer %'"
)
_END_WALSENDER = (
    "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
    " WHERE slot_name = %s AND active"
)


@pytest.mark.fault_long
@pytest.mark.takes(1800)
@pytest.mark.parametrize("version", [15, 18])
def test_a_mirror_is_at_a_transactions_end_though_everything_is_killed(
    version: int,
    own_postgres: OwnPostgres,
    own_kafka: OwnKafka,
    tmp_path: Path,
    topic_prefix: str,
) -> None:
    print(f"seed {_SEED}")  # noqa: T201 - to replay a failure
    told = f"{topic_prefix}told"
    sink = {
        "topic_partitions": 32,
        "txinfo": told,
        "txinfo_form": "walstream",
        "resolved": "200ms",
        "on_truncate": "send",
    }
    source, target, broker = own_postgres(version), own_postgres(version), own_kafka()
    with ExitStack() as stack:
        stream = stack.enter_context(
            streamed(
                source,
                broker,
                tmp_path,
                before=TABLES + OPEN,
                prefix=topic_prefix,
                sink=sink,
                source={"backfill": "initial"},
            )
        )
        mirrored = stack.enter_context(temporary_database(target))
        mirrored.execute(TABLES)
        flags = ("--transactions", told, "--memory", "1")
        topics = [f"{topic_prefix}*"]
        mirror = Mirror(mirrored.dsn, broker.bootstrap, topics, tmp_path, *flags)
        stack.enter_context(mirror)
        witness = stack.enter_context(Witness(mirrored))
        stream.walstream.until("backfill ended")
        mirror.until(lambda: witness.looks or witness.failures, 60, "the first load")
        bank = Bank(stream, mirrored, mirror, witness, (source, target, broker))
        with Transfers(stream.database, _SEED, pause_s=0.1) as load:
            bank.kill_all_along(load)
        expected = contents(stream.database)
        caught_up = lambda: witness.failures or contents(mirrored) == expected  # noqa: E731
        mirror.until(caught_up, _REACHED_S, "it catches up")
        assert not witness.failures, witness.failures
        assert mirror.terminate() == 0, mirror.text
        assert len(witness.seen) > 10
        print(bank.figures(load))  # noqa: T201 - what a run shows


@dataclass
class Bank:
    """A source, what mirrors it, and the servers below; each of them is killed."""

    stream: Stream
    mirrored: Database
    mirror: Mirror
    witness: Witness
    servers: tuple[LocalServer, LocalServer, LocalServer]  # source, target, broker
    kills: Counter[str] = field(default_factory=Counter)
    compared: list[int] = field(default_factory=list)  # numbers of rows

    def kill_all_along(self, load: Transfers) -> None:
        """Kill each kind as often; at some of the kills, compare at an LSN."""
        choose = random.Random(_SEED)  # noqa: S311 - a test's moments
        gate = Gate(self.mirrored)
        for number, (kind, kill) in zip(
            range(1, _KILLS + 1), self._deck(choose), strict=False
        ):
            time.sleep(choose.uniform(0.0, 1.0))
            if number % 7 == 0:  # no divisor of the kinds: each of them at some time
                self._compare(gate, kill)
            else:
                kill()
            self.kills[kind] += 1
            load.wait_for_more(5)
            assert not self.witness.failures, self.witness.failures

    def figures(self, load: Transfers) -> str:
        position = "SELECT version FROM replication_consumer_transaction"
        ((moves,),) = self.mirrored.fetch(position)
        witness = self.witness
        return (
            f"kills: {dict(self.kills)}, {self.kills.total()} in all; transactions"
            f" written: {load.transactions}; moves of the position: {moves}; questions"
            f" of the witness: {witness.looks}, states seen: {len(witness.seen)};"
            f" compared with pg_dump: {len(self.compared)}, rows: {self.compared}"
        )

    def _compare(self, gate: Gate, kill: Callable[[], None]) -> None:
        """Kill between the source's dump and the mirror's, which are of one LSN."""
        gate.open_below(0)
        lsn, rows = dump_of_snapshot(self.stream.database, NAMES)
        gate.open_below(lsn)
        kill()
        self.mirror.until(lambda: gate.is_reached(lsn), _REACHED_S, "it is at the LSN")
        found = dump(self.mirrored, NAMES)
        assert gate.is_reached(lsn)
        assert found == rows
        gate.open()
        self.compared.append(len(rows))

    def _deck(self, choose: random.Random) -> Iterator[tuple[str, Callable[[], None]]]:
        """Give kinds of kills, each once in every round."""
        source, target, broker = self.servers
        kinds = [
            ("worker", self._worker),
            ("walstream", self._walstream),
            ("mirror", self._mirror),
            ("mirror's session", self._session),
            ("walsender", self._walsender),
            ("source server", lambda: _killed(source)),
            ("target server", lambda: _killed(target)),
            ("broker", lambda: _killed(broker)),
        ]
        for _ in count():
            choose.shuffle(kinds)
            yield from kinds

    def _worker(self) -> None:
        kill_worker(self.stream.walstream.worker_pid())

    def _walstream(self) -> None:
        walstream = self.stream.walstream
        assert walstream.running, walstream.text
        pid = walstream.pid
        walstream.kill()
        assert not psutil.pid_exists(pid)
        walstream.start()

    def _mirror(self) -> None:
        self.mirror.kill()  # and claims that it ran
        self.mirror.start()

    def _session(self) -> None:
        ended = lambda: (True,) in self.mirrored.fetch(_END_SESSIONS)  # noqa: E731
        self.mirror.until(ended, 60, "a session of the mirror is ended")

    def _walsender(self) -> None:
        database, slot = self.stream.database, self.stream.walstream.slot
        ended = lambda: (True,) in database.fetch(_END_WALSENDER, slot)  # noqa: E731
        wait_until(ended, 60, "the slot's walsender is ended")


def _killed(server: LocalServer) -> None:
    pid = server.pid
    server.kill()
    assert not psutil.pid_exists(pid)
    server.start()
