"""The terminal of `run`, driven as one: no line mixes a status with the log."""

import re
import sys

from tests.support.programs.pty_screen import PtyProgram

CLOCK = re.compile(r"\d\d:\d\d:\d\d ")
STATUS = re.compile(r"app  \w+ · ")

_DRIVE = """
import json, os, subprocess, sys, time
from walstream.cli.live.screen import RunScreen
from walstream.sources.report import SinkReport, StreamReport, WorkerReport
from walstream.pipeline.outage import Outage
from walstream.status.worker_state import WorkerState
from walstream.telemetry import logs
import structlog
CHILD = '''
import json, os, sys
for n in range(200):
    entry = {"source": "app", "event": f"child {n}", "level": "info"}
    os.write(2, (json.dumps(entry) + chr(10)).encode())
'''
def state(n):
    sinks = {"k": SinkReport(waiting=n > 9, outage=Outage("down " * 40))}
    report = StreamReport(delivered=n, delivered_per_s=float(n), sinks=sinks)
    told = WorkerReport(state="streaming", source=report)
    return {"app": WorkerState(report=told, pid=1)}
with RunScreen(str) as screen:
    logs.configure("info", str)
    log = structlog.get_logger()
    child = subprocess.Popen([sys.executable, "-c", CHILD])
    for n in range(20):
        screen.show(state(n), False)
        log.info(f"own {n}", source="app")
        time.sleep(0.05)
    child.wait()
    log.info("the last one", source="app")
    if len(sys.argv) > 1:
        raise SystemExit(int(sys.argv[1]))
print("behind it", file=sys.stderr)
"""


def test_log_lines_and_status_never_share_a_line() -> None:
    with PtyProgram([sys.executable, "-c", _DRIVE]) as program:
        assert program.wait() == 0
    statuses = 0
    for moment in program.moments:
        for line in moment:
            if STATUS.search(line):
                statuses += 1
                assert STATUS.match(line), line
                assert not CLOCK.search(line), line
                assert len(line) <= 77
    assert statuses > 3
    assert any("…" in line for moment in program.moments for line in moment)
    lines = [line.rstrip() for line in program.emulator.lines]
    own = [line.partition("app: ")[2] for line in lines if "own " in line]
    assert own == [f"own {n}" for n in range(20)]
    assert sum("child " in line for line in lines) == 200
    assert lines[-3:] == [lines[-3], "behind it", ""]
    assert lines[-3].endswith("the last one")
    assert not STATUS.search(program.text)
    assert program.emulator.cursor_shown


def test_an_end_by_an_error_leaves_the_terminal_as_it_was() -> None:
    with PtyProgram([sys.executable, "-c", _DRIVE, "7"]) as program:
        assert program.wait() == 7
    emulator = program.emulator
    row, column = emulator.cursor
    assert emulator.lines[row - 1].endswith("the last one")
    assert not any(emulator.lines[row:])
    assert column == 0
    assert emulator.cursor_shown


def test_a_dumb_terminal_has_no_status_line() -> None:
    with PtyProgram(
        [sys.executable, "-c", _DRIVE], environment={"TERM": "dumb"}
    ) as program:
        assert program.wait() == 0
    assert not any(STATUS.search(line) for each in program.moments for line in each)
    assert "the last one" in program.text


def test_a_defect_of_the_layout_shows_the_log_as_it_is() -> None:
    broken = (
        "import walstream.cli.live.screen as own\nown.print_line = lambda *_: 1 / 0\n"
    )
    with PtyProgram([sys.executable, "-c", broken + _DRIVE]) as program:
        assert program.wait() == 0
    assert '"event": "the last one"' in program.text
    assert sum('"event": "child ' in line for line in program.emulator.lines) == 200
    # also the one that it failed on
    assert sum('"event": "own ' in line for line in program.emulator.lines) == 20


def test_a_terminal_that_is_closed_holds_nothing_up() -> None:
    with PtyProgram(
        [
            sys.executable,
            "-c",
            "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + _DRIVE,
            "0",
        ]
    ) as program:
        program.until("own 3")
        program.hang_up()
        assert program.process.wait(60) == 0


_STOPPED = """
import subprocess, sys, termios
from walstream.cli.live.screen import RunScreen
CHILD = "import os\\nfor n in range(20000): os.write(2, b'line %d\\\\n' % n)"
with RunScreen(str) as screen:
    termios.tcflow(screen.terminal, termios.TCOOFF)
    try:
        subprocess.run([sys.executable, "-c", CHILD], check=True, timeout=30)
    finally:
        termios.tcflow(screen.terminal, termios.TCOON)
"""


def test_a_terminal_that_is_stopped_holds_up_nobody_who_logs() -> None:
    with PtyProgram([sys.executable, "-c", _STOPPED]) as program:
        assert program.wait() == 0, program.text
    lines = [line.rstrip() for line in program.emulator.lines]
    assert "line 19999" in lines
    # more than once, if it was slow to read what it had missed
    notes = re.findall(r"([\d,]+) lines left out", "\n".join(lines))
    assert notes
    left = sum(int(note.replace(",", "")) for note in notes)
    drawn = sum(line.startswith("line ") for line in lines)
    assert drawn + left == 20000


def test_in_the_background_a_shell_has_the_last_line() -> None:
    behind = (
        "import os, sys\n"
        "if pid := os.fork():\n"
        "    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "os.setpgid(0, 0)\n"
    )
    with PtyProgram([sys.executable, "-c", behind + _DRIVE]) as program:
        assert program.wait() == 0
    assert not any(STATUS.search(line) for each in program.moments for line in each)
    assert "the last one" in program.text
