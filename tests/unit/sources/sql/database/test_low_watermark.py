"""When a gap is settled: the algorithm, over lists of transactions made up here."""

import pytest

from tests.support.runtime import altered
from tests.support.servers.sqlite import Lite
from walstream.errors import NO_REPAIR, Repair
from walstream.sources.sql.database.low_watermark import Mark, Marks
from walstream.sources.sql.database.open_transactions import Lacking, Open, is_nameless


class Server:
    """Looks through `marks` while these transactions are open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, lite: Lite) -> None:
        self.found: Open | Lacking = Open(frozenset())
        monkeypatch.setattr(
            "walstream.sources.sql.database.low_watermark.open_transactions",
            lambda *_: self.found,
        )
        self._lite = lite
        self._shape = lite.look("t")
        self.marks = Marks(self._shape)

    def restart(self) -> None:
        self.marks = Marks(self._shape)

    def look(self, *names: str, slack_us: int = 0, fresh: bool = True) -> Mark:
        self.found = Open(frozenset(names), slack_us, fresh)
        with self._lite.session() as connection:
            mark = self.marks.look(connection)
        assert mark is not None
        return mark


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, lite: Lite) -> Server:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    return Server(monkeypatch, lite)


def test_gap_is_not_settled_by_the_look_that_it_is_noted_after(server: Server) -> None:
    mark = server.look()
    assert mark.low < mark.next
    assert server.look().low >= mark.next


def test_gap_waits_for_each_transaction_that_was_open_then(server: Server) -> None:
    server.look()
    noted = server.look("a", "b")
    assert server.look("a", "b").low < noted.next
    assert server.look("b", "c").low < noted.next
    assert server.look("c", "d").low >= noted.next


def test_transaction_that_begins_later_holds_up_only_later_gaps(server: Server) -> None:
    server.look()
    early = server.look("a")
    late = server.look("b")
    after = server.look("b")
    assert after.low >= early.next
    assert after.low < late.next


def test_after_a_restart_what_is_open_may_be_of_any_age(server: Server) -> None:
    noted = server.look("a")
    server.restart()
    assert server.look("a", "b").low < noted.next
    assert server.look("b").low < noted.next
    assert server.look("c").low >= noted.next


def test_transaction_without_a_name_of_its_own_may_be_of_any_age(
    server: Server,
) -> None:
    server.look()
    noted = server.look("3/7")
    assert server.look("-1/99").low < noted.next  # it was prepared meanwhile
    assert server.look("0/2026-01-01").low < noted.next
    assert server.look().low >= noted.next


def test_old_list_settles_nothing_and_proves_nothing(server: Server) -> None:
    server.look()
    noted = server.look(fresh=False)  # "a" was open, but not in the list
    assert server.look("a").low < noted.next
    assert server.look("a").low < noted.next
    assert server.look(fresh=False).low == 0
    assert server.look("b").low >= noted.next


def test_slack_holds_up_gaps_that_are_younger(server: Server) -> None:
    hour = 3_600_000_000
    noted = server.look(slack_us=hour)
    assert server.look(slack_us=hour).low < noted.next
    assert server.look(slack_us=0).low >= noted.next


def test_numbers_grow_though_the_clock_does_not(
    server: Server,
) -> None:
    with altered(time_ns=lambda: 5_000):
        looks = [server.look() for _ in range(3)]
    assert looks == [Mark(6, 5), Mark(7, 6), Mark(8, 7)]


def test_reason_stands_as_long_as_nothing_is_seen(server: Server, lite: Lite) -> None:
    server.found = Lacking("a right is missing", Repair(sql="GRANT;"))
    with lite.session() as connection:
        assert server.marks.look(connection) is None
    assert server.marks.lacking == "a right is missing"
    assert server.marks.repair == Repair(sql="GRANT;")
    server.look()
    assert not server.marks.lacking
    assert server.marks.repair is NO_REPAIR


def test_sqlite_tells_nothing(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    marks = Marks(lite.look("t"))
    with lite.session() as connection:
        assert marks.look(connection) is None
    assert "does not show open transactions" in marks.lacking


def test_names_that_may_have_been_others_are_known() -> None:
    assert is_nameless("-1/7")
    assert is_nameless("0/2026-01-01 00:00:00")
    assert not is_nameless("10/7")
