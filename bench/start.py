"""How long a start takes, warm: from the command to the first row in its topic."""

import time
from dataclasses import dataclass
from typing import Final

from bench import load, programs
from bench.load import Load
from bench.place import Place
from bench.programs import Variant

_LONGEST_S: Final = 60.0


@dataclass
class Start:
    """One start."""

    wall_s: float  # until the first row is in its topic
    rss_mb: float


def measure(
    place: Place, starts: int, variants: list[Variant]
) -> dict[str, list[Start]]:
    """Stop each, write a row, and start it again; the first start does not count."""
    load.prepare(place)
    programs.publish(place, [load.TABLE])
    figures: dict[str, list[Start]] = {}
    for variant in variants:
        name, rows = variant.short, 0
        programs.make_slot(place, name)
        topic = place.topic(f"{name}.public.{load.TABLE}")
        for number in range(starts + 1):
            written = Load(place, load.next_key(place), 1000, 0.001)
            with written:
                written.wait()
            rows += written.rows
            with programs.walstream(place, variant, name) as program:
                while topic.held() < rows:
                    if not program.running or program.age_s > _LONGEST_S:
                        raise SystemExit(f"{name} sends nothing\n{program.log_end()}")
                    time.sleep(0.005)
                took = program.age_s
            if number:
                figure = Start(took, program.rss_mb)
                figures.setdefault(variant.name, []).append(figure)
        topic.close(rows)
    return figures
