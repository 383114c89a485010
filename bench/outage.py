"""Kafka is away while an application goes on writing: memory, and what comes after."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench import load, programs
from bench.latency import receiving
from bench.load import Load
from bench.place import Place
from bench.programs import Variant
from bench.watch import Program

_RATE: Final = 1000
_BEFORE_S, _AFTER_S = 5.0, 10.0
_LONGEST_S: Final = 600.0


def until(done: Callable[[], bool], program: Program) -> None:
    deadline = time.monotonic() + _LONGEST_S
    while not done():
        if not program.running or time.monotonic() > deadline:
            raise SystemExit(f"it does not catch up\n{program.log_end()}")
        time.sleep(0.2)


@dataclass
class Outage:
    """What one outage came to."""

    seconds: int
    rows: int
    rss_mb: float
    caught_up_s: float  # from the start of Kafka until it is a second behind


def measure(
    place: Place, seconds: int, variant: Variant, say: Callable[[str], None]
) -> dict[str, list[Outage]]:
    """Stop Kafka for so many seconds; it has every row at the end."""
    load.prepare(place)
    programs.publish(place, [load.TABLE])
    name = "outage"
    programs.make_slot(place, name)
    topic = place.topic(f"{name}.public.{load.TABLE}")
    planned = Load(place, 0, _RATE, _BEFORE_S + seconds + _AFTER_S)
    with programs.walstream(place, variant, name) as program:
        program.until_said('"streaming"')
        with planned:
            time.sleep(_BEFORE_S)
            place.kafka.stop()
            say(f"Kafka is away for {seconds} s; {_RATE:,} tx/s are written")
            time.sleep(seconds)
            place.kafka.start()
            began = time.monotonic()
            until(lambda: topic.held() >= planned.due_by(time.time() - 1), program)
            caught_up_s = time.monotonic() - began
            planned.wait()
        until(lambda: topic.held() >= planned.rows, program)
    with receiving(place, topic.name, topic.held()) as receiver:
        received = receiver.told()
    keys = sorted({(one[0], one[1]) for one in received})
    if keys != load.written(place, 0):
        raise SystemExit("what was received is not what was written")
    return {variant.name: [Outage(seconds, planned.rows, program.rss_mb, caught_up_s)]}
