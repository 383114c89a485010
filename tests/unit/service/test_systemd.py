"""What a service manager hears on its socket."""

import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from walstream.service.systemd import Notifier
from walstream.sources.report import WorkerReport
from walstream.status.worker_state import WorkerState

STREAMS = {"app": WorkerState(report=WorkerReport(state="streaming"))}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Manager:
    """systemd's end of it."""

    def __init__(self, address: str) -> None:
        self.inlet = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.inlet.bind(address)
        self.inlet.setblocking(False)

    def heard(self) -> list[str]:
        """Give the lines of the last datagram; none came: an empty list."""
        try:
            return self.inlet.recv(4096).decode().split("\n")
        except BlockingIOError:
            return []


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    made = Manager(str(tmp_path / "notify"))
    yield made
    made.inlet.close()


def environment(tmp_path: Path, **more: str) -> Mapping[str, str]:
    return {"NOTIFY_SOCKET": str(tmp_path / "notify"), **more}


def test_the_first_turn_is_ready_and_says_how_all_is(
    manager: Manager, tmp_path: Path
) -> None:
    notifier = Notifier(environment(tmp_path))
    assert notifier.due
    notifier.tell(STREAMS, [])
    assert manager.heard() == ["READY=1", "STATUS=app streaming"]
    assert not notifier.due


def test_an_abstract_socket_is_spoken_to() -> None:
    name = f"walstream-{os.getpid()}"
    manager = Manager(f"\0{name}")
    Notifier({"NOTIFY_SOCKET": f"@{name}"}).tell(STREAMS, [])
    assert manager.heard()[0] == "READY=1"
    manager.inlet.close()


def test_the_watchdog_is_fed_at_half_of_its_time_while_nothing_hangs(
    manager: Manager, tmp_path: Path
) -> None:
    clock = Clock()
    watched = environment(tmp_path, WATCHDOG_USEC="4000000")
    notifier = Notifier(watched, clock)
    notifier.tell(STREAMS, [])
    assert "WATCHDOG=1" in manager.heard()
    due = []
    for passed_s in (1.9, 0.1):
        clock.now += passed_s
        due.append(notifier.due)
    assert due == [False, True]
    notifier.tell(STREAMS, [])
    assert manager.heard() == ["WATCHDOG=1"]
    notifier.tell(STREAMS, ["app"])
    assert manager.heard() == ["STATUS=hangs: app"]
    notifier.tell(STREAMS, [])
    assert manager.heard() == ["WATCHDOG=1", "STATUS=app streaming"]


@pytest.mark.parametrize(
    "watchdog",
    [
        {},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "4000000", "WATCHDOG_PID": "1"},
    ],
)
def test_a_watchdog_that_is_not_ours_is_not_fed(
    manager: Manager, tmp_path: Path, watchdog: dict[str, str]
) -> None:
    Notifier(environment(tmp_path, **watchdog)).tell(STREAMS, [])
    assert "WATCHDOG=1" not in manager.heard()


def test_servers_that_are_away_are_no_reason_to_starve_it(
    manager: Manager, tmp_path: Path
) -> None:
    notifier = Notifier(environment(tmp_path, WATCHDOG_USEC="4000000"))
    waits = WorkerState(report=WorkerReport(state="waiting"))
    notifier.tell({"app": waits, "old": WorkerState(exit_code=3)}, [])
    heard = manager.heard()
    assert "WATCHDOG=1" in heard
    assert heard[-1] == "STATUS=app waiting, old stopped (3)"


def test_a_drain_asks_for_the_time_that_it_may_take(
    manager: Manager, tmp_path: Path
) -> None:
    Notifier(environment(tmp_path)).stopping(30.0)
    heard = manager.heard()
    assert heard == ["STOPPING=1", "STATUS=drains", "EXTEND_TIMEOUT_USEC=35000000"]


def test_many_sources_stay_one_line_that_can_be_read(
    manager: Manager, tmp_path: Path
) -> None:
    workers = {f"s{number:02}": WorkerState(lent=True) for number in range(10)}
    Notifier(environment(tmp_path)).tell(workers, [])
    status = manager.heard()[-1]
    assert status.endswith("s07 lent to a command, and 2 more")


def test_where_nobody_asked_nothing_is_due() -> None:
    notifier = Notifier({})
    assert not notifier.due
    notifier.tell(STREAMS, [])
    notifier.stopping(1.0)


def test_a_manager_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    notifier = Notifier(environment(tmp_path))
    notifier.tell(STREAMS, [])
    notifier.stopping(1.0)


def test_what_did_not_arrive_is_said_again(tmp_path: Path) -> None:
    clock = Clock()
    notifier = Notifier(environment(tmp_path), clock)
    notifier.tell(STREAMS, [])  # nobody listens yet
    late = Manager(str(tmp_path / "notify"))
    clock.now += 5
    notifier.tell(STREAMS, [])
    assert late.heard() == ["READY=1", "STATUS=app streaming"]
    late.inlet.close()


def test_a_worker_may_hang_for_half_of_what_systemd_waits(tmp_path: Path) -> None:
    watched = environment(tmp_path, WATCHDOG_USEC="60000000")
    assert Notifier(watched).patience_s == 30
    assert Notifier(environment(tmp_path)).patience_s == float("inf")
    assert Notifier({"WATCHDOG_USEC": "60000000"}).patience_s == float("inf")
