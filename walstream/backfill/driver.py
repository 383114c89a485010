"""A process that runs chunks on Spark for a worker, and ends with it.

Its own, since a JVM's memory and death are not the stream's. The order comes over
stdin, what was done goes to stdout; the end of stdin is the worker's.
"""

import contextlib
import os
import pickle
import signal
import sys
import threading
from pathlib import Path
from typing import IO, Any, NoReturn

import structlog

from walstream import logs
from walstream.backfill.order import Failed, Finished, Message, Order
from walstream.chunk_task import chunk_task
from walstream.config import Config
from walstream.errors import WalstreamError
from walstream.metrics import SOURCE
from walstream.parent import die_with_parent
from walstream.spark import session
from walstream.spark.leash import Leash

_log = structlog.get_logger()


class Telling:
    """Writes messages to the worker; one that is gone ends us."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe

    def __call__(self, message: Message) -> None:
        try:
            pickle.dump(message, self._pipe)
            self._pipe.flush()
        except BrokenPipeError:
            os._exit(1)


def main() -> int:
    """Run one order."""
    order: Order = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own worker
    die_with_parent(order.parent)
    # py4j and what it starts may print: nothing of that is a message
    tell = Telling(os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    config = Config.from_json(order.config)
    logs.configure(config.log_level, config.secrets.scrub, **{SOURCE: order.source})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's: the worker decides
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        _run(order, config, tell)
    except WalstreamError as error:
        tell(Failed(error))
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - logged scrubbed, not by the interpreter
        _log.exception("the backfill's driver failed: a defect")
        tell(Failed(WalstreamError(f"{type(error).__name__}: a defect")))
        return 1
    tell(Finished())
    return 0


def _run(order: Order, config: Config, tell: Any) -> None:
    settings = session.Settings(
        config.spark.master,
        {key: str(text) for key, text in config.spark.conf.items()},
        config.spark.connections,
    )
    spark = session.start(settings)
    from walstream.spark import chunks  # noqa: PLC0415 - loads pyspark

    leash = Leash.of_this_process(Path(order.lock)) if spark.local else None
    task = chunk_task(config, order.source, order.snapshot, order.topics, leash)
    chunks.run(spark, order.chunks, task, tell)


def _leave(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(0)  # what runs on Spark is cancelled on the way out


def _end_with_stdin() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    code = 0
    with contextlib.suppress(SystemExit):
        code = main()
    sys.stderr.flush()
    # a JVM that died leaves threads of py4j waiting for it
    os._exit(code)
