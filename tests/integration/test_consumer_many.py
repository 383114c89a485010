"""A consumer of many partitions: few sessions, one budget of bytes."""

import threading

import pytest

from consumer import BasicConsumer, Op
from consumer.group.buffer import BUDGET, Budget
from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database
from tests.support.loads.op_record import insert, truncate
from tests.support.programs.consumer_thread import Running, Setting
from tests.support.threads import Threads

_PARTITIONS = 1000
_LARGE = 300_000


@pytest.mark.fault_long  # a broker takes half a minute to make so many logs
@pytest.mark.takes(120)
def test_a_thousand_partitions_take_eight_sessions(setting: Setting) -> None:
    feed = setting.make(_PARTITIONS)
    for number in range(2 * _PARTITIONS):
        feed.insert(number, number % _PARTITIONS)
    # a broker takes long to make so many logs
    wait_until(lambda: feed.flushed(1), 120, "all is sent")
    with Watch(setting) as watch, setting.running():
        wait_until(
            lambda: setting.failed() or setting.count() >= 2 * _PARTITIONS,
            120,
            "all came",
        )
    assert 1 < watch.most <= 8
    once(setting, 2 * _PARTITIONS)


def test_a_wait_at_a_truncate_holds_no_session(setting: Setting) -> None:
    """More partitions than sessions: all but one wait for the last one's rows."""
    count = 40
    feed = setting.make(count)
    barrier = 1_000_000
    for partition in range(count - 1):
        feed.insert(partition, partition)
        feed.send(truncate(barrier, count), partition)
        feed.send(insert(barrier + 8, partition, [str(partition), "1"]), partition)
    feed.flush()
    waiting = "SELECT count(*) FROM replication_consumer_barrier"
    with Watch(setting) as watch, setting.running(connections=2):
        wait_until(
            lambda: (
                setting.failed()
                or (
                    setting.count() == count - 1
                    and setting.database.fetch(waiting) == [(count - 1,)]
                )
            ),
            60,
            "all but one wait",
        )
        for number in range(500):
            feed.insert(number, count - 1)
        feed.send(truncate(barrier, count), count - 1)
        feed.flush()
        wanted = (count - 1) + 500 + 1 + (count - 1)
        setting.until(wanted)
    assert watch.most == 2
    once(setting, wanted)
    assert setting.count("item") == count - 1
    assert setting.count("replication_consumer_barrier") == 1


def once(setting: Setting, wanted: int) -> None:
    """Claim that each op was applied once, in its partition's order."""
    assert setting.database.fetch(
        "SELECT count(*), count(DISTINCT (lsn, seq_id)) FROM applied"
    ) == [(wanted, wanted)]
    assert (
        setting.database.fetch(
            "SELECT FROM (SELECT lsn < lag(lsn) OVER (PARTITION BY partition"
            " ORDER BY at) AS shuffled FROM applied) AS found WHERE shuffled"
        )
        == []
    )


class Watch(Threads):
    """Counts the sessions of a setting's consumers, all the time."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(self._look)
        self.most = 0
        self._setting = setting
        self._home = Database(setting.database.server)

    def _look(self) -> None:
        while not self.leaving.wait(0.05):
            ((found,),) = self._home.fetch(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = %s AND application_name LIKE 'consumer %%'",
                self._setting.database.name,
            )
            self.most = max(self.most, found)


def test_large_records_of_many_partitions_keep_one_budget(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve times the budget, and nothing is handled before it is nearly full."""
    held = 0
    full = threading.Event()
    add = Budget.add

    def noted(budget: Budget, count: int) -> None:
        nonlocal held
        add(budget, count)
        held = max(held, budget.held)
        if held > BUDGET * 3 // 4:
            full.set()

    monkeypatch.setattr(Budget, "add", noted)
    feed = setting.make(20)
    total = 660
    for number in range(total):
        row = [str(number), "x" * _LARGE]
        feed.send(insert(feed.next_lsn(), 0, row), number % 20)
    feed.flush()
    seen: dict[int, list[int]] = {number: [] for number in range(20)}

    def handle(op: Op) -> None:
        assert full.wait(60)
        seen[op.record.partition].append(op.record.offset)

    consumer = BasicConsumer(
        handle,
        group=setting.group,
        topics=setting.topic,
        kafka={"bootstrap.servers": setting.kafka.bootstrap},
    )
    with consumer:
        running = Running(consumer)
        wait_until(
            lambda: running.error or sum(map(len, seen.values())) >= total,
            60,
            "all is handled",
        )
    running.join()
    assert list(seen.values()) == [list(range(total // 20))] * 20
    assert held <= BUDGET + 2 * _LARGE
