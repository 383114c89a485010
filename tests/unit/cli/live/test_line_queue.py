"""Lines wait in a bounded queue, and who puts them there does not."""

import threading
import time

from walstream.cli.live.line_queue import BYTES, LINES, LineQueue


def everything(queue: LineQueue) -> list[bytes]:
    queue.close()
    taken: list[bytes] = []
    while (lines := queue.take(0)) is not None:
        taken += lines
    return taken


def test_all_lines_come_in_order_and_then_it_is_over() -> None:
    queue = LineQueue()
    assert queue.take(0) == []
    lines = [b"%d" % number for number in range(250)]
    queue.put(lines[:120])
    first = queue.take(60) or []
    assert 0 < len(first) < 120  # the status is drawn between
    queue.put(lines[120:])
    assert first + everything(queue) == lines
    assert queue.take(60) is None


def test_the_oldest_are_left_out_and_counted() -> None:
    queue = LineQueue()
    for number in range(LINES + 1234):
        queue.put([b"%d" % number])
    note, *lines = everything(queue)
    assert "… 1,234 lines left out" in note.decode()
    assert lines == [b"%d" % number for number in range(1234, LINES + 1234)]


def test_long_lines_do_not_fill_the_memory() -> None:
    queue = LineQueue()
    queue.put([b"x" * (BYTES // 2)] * 3)
    note, *lines = everything(queue)
    assert "… 1 line left out" in note.decode()
    assert len(lines) == 2
    # what was taken makes room again
    queue.put([b"x" * (BYTES // 2)] * 2)
    assert len(everything(queue)) == 2


def test_a_wait_ends_when_it_is_woken() -> None:
    queue = LineQueue()
    began = time.monotonic()
    threading.Timer(0.05, queue.wake).start()
    assert queue.take(60) == []
    assert time.monotonic() - began < 30
