"""Servers' CPU is of the walsender that reads the slot, and of the broker meanwhile."""

import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.server_cost import ServerCost
from bench.watch import Figure

_BUSY = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"


def cost(sender: str) -> ServerCost:
    place = SimpleNamespace(
        sql=lambda query: sender if "= 'own'" in query else "",
        kafka=SimpleNamespace(pid=os.getpid()),
    )
    return ServerCost(cast("Any", place), "own")


def test_a_sender_counts_whole_and_the_broker_from_the_mark_on() -> None:
    command = [sys.executable, "-c", _BUSY]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as sender:
        assert sender.stdout is not None
        sender.stdout.readline()
        found = cost(str(sender.pid))
        found.mark()
        began = time.process_time()
        while time.process_time() - began < 0.1:
            pass
        figure = found.complete(Figure(1.0, 1.0, 10.0), 10)
        used = time.process_time() - began
        sender.communicate(b"\n")
    assert 0.19e5 <= figure.sender_us_per_row < 1e5
    # ticks of a hundredth of a second
    assert 0.08e5 <= figure.broker_us_per_row <= (used + 0.02) * 1e5
    found.look()  # it has ended: what was seen last counts
    assert found.sender_s * 1e5 == pytest.approx(figure.sender_us_per_row)


def test_a_slot_that_nobody_read_has_no_figure() -> None:
    with pytest.raises(SystemExit, match="never seen"):
        cost("None").complete(Figure(1.0, 1.0, 10.0), 10)
