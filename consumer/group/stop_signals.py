"""SIGTERM and SIGINT as the wish to stop."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_log = logging.getLogger(__name__)


@contextmanager
def stopping_at_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` at the first signal; a second one ends the process.

    Only the main thread hears signals: in another one they stay as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def heard(number: int, _: object) -> None:
        _log.info("stopping after %s", signal.Signals(number).name)
        restore()
        stop()

    for number in _SIGNALS:
        signal.signal(number, heard)
    try:
        yield
    finally:
        restore()
