"""When to end: a signal came, or nobody reads the output any more.

A thread waits for the signals, since the client library may hold the main thread in a
call for seconds; whoever asks to end is not kept waiting.
"""

import os
import select
import signal
import threading
import time
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_S: Final = 1.0


class Ending:
    """Ends this process with code 0, by itself where it is held up."""

    def __init__(self, output: int) -> None:
        """Take over the signals, and watch a file descriptor."""
        self._asked = threading.Event()
        self._output = select.poll()
        self._output.register(output, 0)  # errors and hang-ups are always told
        # what is ignored stays so: under nohup a SIGHUP ends nothing
        heard = [one for one in _SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]
        signal.pthread_sigmask(signal.SIG_BLOCK, heard)
        threading.Thread(target=self._wait, args=[heard], daemon=True).start()

    def __call__(self) -> bool:
        return self._asked.is_set() or bool(self._output.poll(0))

    def _wait(self, signals: list[signal.Signals]) -> None:
        signal.sigwait(signals)
        self._asked.set()
        time.sleep(_GRACE_S)
        os._exit(0)
