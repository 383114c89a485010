"""The parts of the strikes, without servers: plan, journal, judgement, traces."""

# ruff: noqa: ARG002 - a stand-in takes what the real one takes

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import pytest

from tests.callsites.journal import ABSENT, HELD, VIOLATED, Entry, Journal
from tests.callsites.plan import Strike, errors, strikes
from tests.callsites.service import Service, Violation
from tests.callsites.shim import Action, Tap
from tests.callsites.trace import Trace, common
from tests.support.programs.fork import ForkServer

STATE = "worker fdatasync state/app/data.mdb @walstream/service/worker.py:Worker.run"
SEND = "worker sendmsg Kafka api 0"


class Ending:
    """A program that has ended with a code, and said something."""

    def __init__(self, code: int, text: str = "") -> None:
        self.environment: Mapping[str, str] = {}
        self.program = Path()
        self.forks: ForkServer | None = None
        self.code, self.text = code, text
        self.running = False
        self.starts = 0

    def start(self) -> Self:
        self.starts += 1
        return self

    def wait(self, timeout_s: float = 0) -> int:
        return self.code

    def terminate(self, timeout_s: float = 0) -> int:
        return self.code

    def close(self) -> None: ...


def judged(folder: Path, program: Ending, *, asked: bool = False) -> Service:
    service = Service(program, Tap(folder, 0), {})
    service.start()
    program.running = asked
    service.stop() if asked else service.tend()
    return service


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (Ending(3), "needs an operator"),
        (Ending(5), "exit code 5 by itself"),
        (Ending(0), "exit code 0 by itself"),
        (Ending(0, "Traceback (most recent call last):"), "log says 'Traceback'"),
        (Ending(0, "worker failed: a defect"), "log says 'a defect'"),
    ],
)
def test_an_end_that_nobody_asked_for_is_a_violation(
    program: Ending, said: str, tmp_path: Path
) -> None:
    with pytest.raises(Violation, match=said):
        judged(tmp_path, program)


def test_an_end_that_was_asked_for_has_to_be_clean(tmp_path: Path) -> None:
    service = judged(tmp_path, Ending(0), asked=True)
    assert [end.code for end in service.ends] == [0]
    with pytest.raises(Violation, match="exit code 1 when it was asked to end"):
        judged(tmp_path, Ending(1), asked=True)


def test_each_site_is_struck_at_its_first_its_last_and_a_middle_call() -> None:
    every = strikes({STATE: 9, SEND: 2}, seed=1)
    assert len(every) == len(set(every)) == 3 * (2 + 3) + 2 * (2 + 2)
    at = {(one.place, one.order(9, group=False).occurrence) for one in every}
    assert at == {("first", 1), ("middle", 5), ("last", 9)}
    # what a run has once has no last call beside the first
    assert {one.place for one in strikes({STATE: 1}, 1)} == {"first"}
    assert strikes({STATE: 9}, 1) != strikes({STATE: 9}, 2)
    # what only asks comes last
    assert strikes({"worker sendto SQL SELECT @a.py:f": 9, SEND: 1}, 1)[0].site == SEND
    failing = Strike(SEND, "first", "ECONNRESET").order(2, group=True)
    assert (failing.action, failing.error) == (Action.FAIL, errno.ECONNRESET)
    assert Strike(SEND, "last", "killed after").order(2, group=True).group


def test_a_call_fails_as_it_may() -> None:
    assert errors(STATE) == ("EIO", "ENOSPC", "EINTR")
    assert errors(SEND) == ("ECONNRESET", "EINTR")
    assert errors("worker connect Kafka") == ("ECONNREFUSED", "ETIMEDOUT")
    assert errors("supervisor write pipe @a.py:f") == ("EINTR",)


def entry(name: str, outcome: str, code: str = "now") -> Entry:
    return Entry("stream", 18, name, True, outcome, "", 1.0, code)


def test_a_journal_repeats_what_was_violated_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    first = Journal(file, "now")
    first.keep_sites("stream", 18, {STATE: 9})
    for name, outcome in {"a": HELD, "b": VIOLATED, "c": ABSENT}.items():
        first.keep(entry(name, outcome))
    again = Journal(file, "now")
    held = {name: again.held("stream", 18, name) for name in "abcd"}
    assert held == {"a": True, "b": False, "c": True, "d": False}
    assert not again.held("stream", 15, "a")
    assert again.sites("stream", 18) == {STATE: 9}
    assert again.summary() == [
        "stream on 18: 1 sites, 2 kills, 0 failures, 1 not reached, 1 violations"
    ]
    again.keep(entry("b", HELD))
    assert Journal(file, "now").held("stream", 18, "b")
    assert Journal(file, "other").sites("stream", 18) is None


def hexed(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def test_straces_lines_become_sites(tmp_path: Path) -> None:
    tmp_path = tmp_path.resolve()
    data = hexed(f"{tmp_path}/state/app/data.mdb")
    peer = "<TCP:[127.0.0.1:40000->127.0.0.1:5432]>"
    words = ", ".join(
        f'"{hexed(one)}"' for one in ("-m", "walstream.service.worker_main")
    )
    startup = hexed("\0\0\0\x16\0\x03\0\0user\0postgres\0")
    query = hexed("Q\0\0\0\x0bselect\0")
    lines = [
        f'7 execve("{hexed("/python")}", ["{hexed("python")}", {words}], 0x1) = 0',
        "7 clone3({flags=CLONE_VM|CLONE_THREAD}, 88) = 8",
        f"8 fdatasync(5<{data}> <unfinished ...>",
        f"7 connect(6{peer}, {{sa_family=AF_INET, sin_port=htons(5432)}}, 16) = 0",
        "8 <... fdatasync resumed>)              = 0",
        f'7 sendto(6{peer}, "{startup}", 22, 0, NULL, 0) = 22',
        f'8 sendto(6{peer}, "{query}", 12, 0, NULL, 0) = 12',
        f'9 unlink("{data}") = 0',
    ]
    assert Trace(tmp_path, 5432, 9092).read(lines) == {
        "worker fdatasync state/app/data.mdb": 1,
        "worker connect PostgreSQL": 1,
        "worker sendto SQL StartupMessage": 1,
        "worker sendto SQL SELECT": 1,
    }
    assert common(STATE) == "worker fdatasync state/app/data.mdb"
    assert common("sink write pipe @a.py:f") == ""
