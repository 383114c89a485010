"""The close of a Kafka client, which may never come back."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from walstream.telemetry import runtime

LEAVE_S: Final = 30.0


def left(close: Callable[[], None], timeout_s: float = LEAVE_S) -> bool:
    """Close a Kafka consumer; tell whether that came back in time.

    It may wait for ever for a broker's thread that holds a partition (librdkafka's
    issue 4362). What was handled is stored by then, or comes again.
    """
    ended: Future[None] = Future()

    def run() -> None:
        try:
            close()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            ended.set_exception(error)
        else:
            ended.set_result(None)

    runtime.start_thread(run, "consumer-close")
    try:
        ended.result(timeout_s)
    except TimeoutError:
        return ended.done()
    return True
