"""A TRUNCATE that Kafka deleted from one partition before the group began to read."""

import re

import pytest

from consumer import TopicReplaced
from tests.support.deadline import wait_until
from tests.support.loads.op_record import Feed, backfilled, truncate
from tests.support.oracles.topic_reader import TopicAdmin
from tests.support.programs.consumer_thread import Setting
from tests.support.project.own_coverage import ROOT
from walstream.lsn import show

pytestmark = pytest.mark.same_on_15
BEGUN = "SELECT count(next_offset) FROM replication_consumer_state"


def empty(feed: Feed, partitions: int = 2) -> None:
    """Send a TRUNCATE to each partition."""
    lsn = feed.next_lsn()
    for partition in range(partitions):
        feed.send(truncate(lsn, partitions), partition)


def waiting(setting: Setting, partitions: int, before: dict[int, int]) -> None:
    """Send one TRUNCATE less than there are partitions, and a row to all but the last.

    Then delete what is before these offsets.
    """
    feed = setting.make(partitions=partitions)
    for _ in range(partitions - 1):
        empty(feed, partitions)
    for partition in range(partitions - 1):
        feed.insert(partition, partition)
    feed.flush()
    admin = TopicAdmin(setting.kafka.bootstrap)
    for partition, offset in before.items():
        admin.delete_before(setting.topic, offset, partition)


def trim(setting: Setting, feed: Feed) -> None:
    """Delete it from partition 1, where two rows come behind it."""
    empty(feed)
    for number in (100, 101):
        feed.insert(number, 1)
    feed.flush()
    TopicAdmin(setting.kafka.bootstrap).delete_before(setting.topic, 1, 1)


def rewound(setting: Setting, lsn: int) -> str:
    """Return the documented statements that make a group handle ops again."""
    written = (ROOT / "docs" / "operations.md").read_text("utf-8")
    (found,) = re.findall(
        r"```sql\n(BEGIN;\nUPDATE replication_.*?)```", written, re.DOTALL
    )
    shown = str(found).replace("'mirror'", f"'{setting.group}'")
    shown = shown.replace("'shop.orders'", f"'{setting.topic}'")
    return shown.replace("0/1E8480", show(lsn))


def items(setting: Setting) -> list[int]:
    return [number for (number,) in setting.database.fetch("SELECT id FROM item")]


def test_a_truncate_with_which_the_others_begin_is_passed(
    on_both: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    setting = on_both
    feed = setting.make(partitions=2)
    trim(setting, feed)
    feed.insert(102, 0)
    feed.flush()
    with setting.running():
        setting.until(3)
        assert {*items(setting)} == {100, 101, 102}
        assert "is not run: Kafka had deleted it from partitions [1]" in caplog.text
        empty(feed)
        feed.insert(103, 0)
        feed.flush()
        setting.until(5)
    assert items(setting) == [103]


def test_a_truncate_is_run_again_where_its_group_was_set_back(setting: Setting) -> None:
    def send(feed: Feed) -> None:
        feed.insert(1, 0)
        empty(feed)
        feed.insert(2, 1)
        feed.flush()

    send(setting.make(partitions=2))
    with setting.running():
        setting.until(3)
        assert items(setting) == [2]
    setting.database.execute(rewound(setting, 1000))
    send(Feed(setting.kafka.bootstrap, setting.topic))  # under the same LSNs
    with setting.running():
        setting.until(6)
    assert items(setting) == [2]


def test_a_truncate_that_would_take_newer_rows_stops_the_group(
    on_both: Setting,
) -> None:
    setting = on_both
    feed = setting.make(partitions=2)
    feed.insert(1, 0)
    trim(setting, feed)
    for _ in range(2):  # a restart does not pass it
        with setting.running() as running:
            error = running.fails(TopicReplaced)
        assert {*items(setting)} == {1, 100, 101}
    assert (error.topic, error.partition) == (setting.topic, 1)
    assert "from partitions [1]" in str(error)
    assert "auto.offset.reset=latest" in error.hint
    setting.database.execute(error.repair.sql)
    with setting.running(kafka={"auto.offset.reset": "latest"}):
        wait_until(lambda: setting.database.fetch(BEGUN) == [(2,)], 60, "it has begun")
        empty(feed)
        feed.insert(2, 1)
        feed.flush()
        setting.until(5)
    assert items(setting) == [2]


@pytest.mark.parametrize("rows", [False, True])
def test_a_partition_that_was_read_to_its_end_is_not_waited_for_for_ever(
    setting: Setting, *, rows: bool
) -> None:
    """All that is left there are rows of a backfill, or nothing."""
    feed = setting.make(partitions=2)
    feed.insert(1, 0)
    empty(feed)
    if rows:
        feed.send(backfilled(900, 2, 0, ["7", "7"]), 1)
    feed.insert(2, 0)
    feed.flush()
    TopicAdmin(setting.kafka.bootstrap).delete_before(setting.topic, 1, 1)
    with setting.running(barrier_timeout=1) as running:
        if rows:
            assert "from partitions [1]" in str(running.fails(TopicReplaced))
        else:
            setting.until(3)
    assert {*items(setting)} == ({1, 7} if rows else {2})


def test_a_partition_that_waits_at_a_truncate_before_is_waited_for(
    on_both: Setting,
) -> None:
    """Partition 2 lacks both, 0 the first, at which 1 waits for 2 as long as 0 does."""
    setting = on_both
    waiting(setting, 3, {0: 1, 2: 2})
    with setting.running(barrier_timeout=1):
        setting.until(3)
    assert {*items(setting)} == {0, 1}


@pytest.mark.parametrize("between", [False, True])
def test_truncates_that_follow_each_other_in_a_quiet_partition_are_passed(
    on_both: Setting, *, between: bool
) -> None:
    """The first one takes no effect, so none did before the second; a row would."""
    setting = on_both
    feed = setting.make(partitions=2)
    empty(feed)
    if between:
        feed.insert(1, 0)
    empty(feed)
    feed.insert(100, 1)
    feed.insert(101, 0)
    feed.flush()
    TopicAdmin(setting.kafka.bootstrap).delete_before(setting.topic, 2, 1)
    with setting.running() as running:
        if between:
            assert "from partitions [1]" in str(running.fails(TopicReplaced))
        else:
            setting.until(2)
    assert {*items(setting)} == ({1, 100} if between else {100, 101})


def test_a_truncate_behind_one_that_emptied_a_quiet_partition_is_passed(
    setting: Setting,
) -> None:
    """It ran for want of rows in the other, which got some while the second waited."""
    feed = setting.make(partitions=2)
    empty(feed)
    empty(feed)
    feed.insert(1, 0)
    feed.flush()
    TopicAdmin(setting.kafka.bootstrap).delete_before(setting.topic, 2, 1)
    with setting.running(barrier_timeout=3):
        setting.until(1)  # the first ran
        feed.insert(100, 1)
        feed.flush()
        wait_until(lambda: {*items(setting)} == {1, 100}, 60, "both rows are there")


def test_each_of_three_partitions_that_wait_one_behind_the_other_is_waited_for(
    on_both: Setting,
) -> None:
    """Partition 3 lacks all Truncates; 2 begins at the first, 0 at the last."""
    setting = on_both
    waiting(setting, 4, {0: 2, 1: 1, 3: 3})
    with setting.running(barrier_timeout=1):
        wait_until(lambda: {*items(setting)} == {0, 1, 2}, 60, "all rows are there")
