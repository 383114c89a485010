"""The threads beside the loop."""

import threading

from walstream.sources.postgres.incremental.threads import Threads


def test_both_kinds_wake_the_loop_and_what_is_written_is_awaited() -> None:
    woken = threading.Semaphore(0)
    held, written = threading.Event(), threading.Event()
    threads = Threads(woken.release)
    assert threads.read(max, 1, 2).result(5) == 2
    assert woken.acquire(timeout=30)
    started = threading.Event()

    def read() -> bool:
        started.set()
        return held.wait(60)

    reading = threads.read(read)
    assert started.wait(30)
    threads.write(written.set)
    threads.close()  # though a reader is still at it
    assert written.is_set()
    assert not reading.done()
    held.set()
    assert reading.result(30)
