"""An idempotent consumer in a process of its own, that dies where it is told to.

python -m tests.support.programs.consumer_child ORDER

ORDER is JSON: {"dsn": …, "kafka": {…}, "die": ["committed", 3], …}
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from consumer import IdempotentConsumer, Measure, Op, Retry, Transaction
from consumer.group.buffer import Inbox
from consumer.group.fetcher import Fetcher
from consumer.state.batch import Batch
from consumer.state.session import PartitionSession
from tests.support.programs.consumer_thread import AppliedBatches, apply

STEPS = {
    "fetched": (Inbox, "take"),
    "before commit": (Batch, "move"),
    "committed": (PartitionSession, "committed"),
    "offset stored": (Fetcher, "_store_all"),
}


class Death:
    """SIGKILL at the n-th time that a step is passed."""

    def __init__(self, times: int) -> None:
        self._times = times
        self._counting = threading.Lock()

    def passed(self) -> None:
        with self._counting:
            self._times -= 1
            if self._times == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class MortalBatches(AppliedBatches):
    """May die after the handler, before the commit."""

    def __init__(self, death: Death, step: str) -> None:
        super().__init__()
        self._death, self._step = death, step

    def handle_batch(self, tx: Transaction, ops: Sequence[Op]) -> None:
        super().handle_batch(tx, ops)
        if self._step == "handler ran":
            self._death.passed()


def lay(death: Death, owner: type, name: str) -> None:
    """Let the method pass the step when it did something."""
    method: Callable[..., Any] = getattr(owner, name)

    def stepped(*args: Any) -> Any:
        result = method(*args)
        if result or name != "take":
            death.passed()
        return result

    setattr(owner, name, stepped)


def main(given: dict[str, Any]) -> None:
    step, times = given.get("die", ["", 0])
    death = Death(times)
    if step in STEPS:
        lay(death, *STEPS[step])
    hold = Path(given.get("hold", "/nonexistent"))
    retried: set[int] = set()

    def handle(tx: Transaction, op: Op) -> None:
        if hold.exists() and op.record.partition == 1 and not retried:
            retried.add(op.lsn)
            raise Retry
        apply(tx, op)
        if step == "handler ran":
            death.passed()
        if hold.exists():
            say("holds")
            while hold.exists():
                threading.Event().wait(0.01)

    def measure(what: Measure, *_: object) -> None:
        if what is Measure.RETRIED and hold.exists():
            say("retries")
            while hold.exists():
                threading.Event().wait(0.01)

    say("starts")
    IdempotentConsumer(
        MortalBatches(death, step) if given.get("batches") else handle,
        given["dsn"],
        group=given["group"],
        topics=given["topic"],
        kafka=given["kafka"],
        batch=given.get("batch", 20),
        pipeline=given.get("pipeline", False),
        metrics=measure,
    ).run()


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
