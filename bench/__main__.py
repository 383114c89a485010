"""`python -m bench`: walstream beside the limit and its peers, profile by profile.

Each program of a profile has the same rows from the same server to the same broker, one
after the other, several times; ratios count, since machines are noisy. Figures go to
bench/results, those of small runs to bench/results/small.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from bench import drain, latency, network, outage, programs, results, shown, start
from bench.drain import Wanted
from bench.far_kafka import FarKafka
from bench.place import servers
from bench.programs import Variant, variants
from bench.results import Document
from bench.shapes import SHAPES
from tests.support.servers.faulty_registry import faulty_registry


@dataclass(frozen=True)
class Size:
    """How many rows, or transactions, or seconds."""

    full: int
    quick: int
    quick_debezium: bool = False


SIZES: Final = {
    "A": Size(2_000_000, 300_000, quick_debezium=True),
    "B": Size(300_000, 50_000, quick_debezium=True),
    "debezium": Size(2_000_000, 300_000, quick_debezium=True),
    "formats": Size(2_000_000, 300_000),
    "wide": Size(300_000, 50_000),
    "update-full": Size(500_000, 100_000),
    "mixed": Size(500_000, 100_000),
    "tables": Size(500_000, 100_000),
    "layouts": Size(500_000, 100_000),
    "huge": Size(10_000_000, 1_000_000),
    "delivery": Size(2_000_000, 300_000),
    "latency": Size(60, 10),  # seconds of each run
    "delivery-latency": Size(60, 10),  # likewise
    "network": Size(2_000_000, 300_000),
    "start": Size(5, 3),  # starts
    "backfill": Size(2_000_000, 300_000),
    "poll": Size(2_000_000, 200_000),
    "consumer": Size(300_000, 60_000),
    "outage": Size(1800, 20),  # seconds without Kafka
}
QUICK: Final = [name for name in SIZES if name != "outage"]


@dataclass(frozen=True)
class Order:
    """What was asked for of one profile."""

    profile: str
    rows: int
    runs: int
    partitions: int
    debezium: bool
    small: bool


def main() -> None:
    wanted = _parsed()
    orders = [order(profile, wanted) for profile in wanted.all]
    documents, failed = [], []
    for one in orders:
        try:
            document = _RUN.get(one.profile, _drain)(one)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the others go on
            shown.console.print(f"[red]{one.profile} failed[/]: {error}", markup=True)
            failed.append(one.profile)
            continue
        if _RUN.get(one.profile) is not _module:  # those show it themselves
            shown.show(document)
        documents.append(document)
    if documents:
        shown.goals(documents)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--profile", action="append", choices=SIZES, help="which one; may be repeated"
    )
    parser.add_argument("--runs", type=int, default=0, help="runs of each program")
    parser.add_argument("--rows", type=int, default=0, help="rows, seconds or starts")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="small runs, 10 minutes")
    parser.add_argument("--no-debezium", action="store_true")
    wanted = parser.parse_args()
    wanted.all = wanted.profile or (QUICK if wanted.quick else list(SIZES))
    return wanted


def deliveries() -> list[Variant]:
    """Give each delivery, in the fastest form."""
    return [variants()[0], programs.transactional()]


def order(profile: str, wanted: argparse.Namespace) -> Order:
    """Fill in what was not said."""
    size = SIZES[profile]
    rows = wanted.rows or (size.quick if wanted.quick else size.full)
    debezium = not wanted.no_debezium
    if wanted.quick:
        debezium = debezium and size.quick_debezium
    return Order(
        profile,
        rows,
        wanted.runs or (1 if wanted.quick else 3),
        wanted.partitions,
        debezium,
        small=rows < size.full,
    )


def _say(line: str) -> None:
    shown.console.print(line, markup=False, highlight=False)


def _drain(order: Order) -> Document:
    shape = SHAPES[order.profile](order.rows)
    many = order.profile in ("tables", "layouts")
    partitions = 1 if many else order.partitions
    wanted = Wanted(order.runs, variants(), order.debezium)
    if order.profile == "debezium":  # the same envelope on both sides
        forms = [variants()[0], programs.envelopes()]
        wanted = Wanted(order.runs, forms, order.debezium, envelopes=True)
    if order.profile == "layouts":
        wanted = Wanted(order.runs, programs.layouts(), debezium=False)
    if order.profile == "delivery":
        wanted = Wanted(order.runs, deliveries(), debezium=False)
    with servers(order.rows, partitions) as place:
        figures = drain.measure(place, shape, wanted, _say)
    return results.save(order.profile, figures, vars(order), small=order.small)


def _formats(order: Order) -> Document:
    shape = SHAPES["formats"](order.rows)
    with (
        faulty_registry() as registry,  # without a fault: it is asked twice in a run
        servers(order.rows, order.partitions) as place,
    ):
        forms = [variants()[0], *programs.plain_formats(), programs.envelopes()]
        forms.append(programs.avro(registry.url))
        wanted = Wanted(order.runs, forms, debezium=False)
        figures = drain.measure(place, shape, wanted, _say)
    return results.save(order.profile, figures, vars(order), small=order.small)


def _latency(order: Order) -> Document:
    with servers(100_000, order.partitions) as place:
        seconds, debezium = order.rows, order.debezium
        wanted = Wanted(order.runs, variants()[:1], debezium)
        figures = latency.measure(place, seconds, wanted, _say)
    return results.save(order.profile, figures, vars(order), small=order.small)


def _delivery_latency(order: Order) -> Document:
    with servers(100_000, order.partitions) as place:
        wanted = Wanted(order.runs, deliveries(), debezium=False)
        figures = latency.measure(place, order.rows, wanted, _say)
    return results.save(order.profile, figures, vars(order), small=order.small)


def _network(order: Order) -> Document:
    kind = partial(FarKafka, programs.AWAY_MS)
    seconds = SIZES["latency"]
    with servers(order.rows, order.partitions, kind) as place:
        wanted = Wanted(order.runs, variants()[:1], debezium=False)
        links = cast("FarKafka", place.kafka).links
        told = seconds.quick if order.small else seconds.full
        figures = network.measure(place, links, wanted, told, _say)
    return results.save(order.profile, figures, vars(order), small=order.small)


def _start(order: Order) -> Document:
    with servers(0, order.partitions) as place:
        figures = start.measure(place, max(order.rows, order.runs), variants())
    return results.save(order.profile, figures, vars(order), small=order.small)


def _outage(order: Order) -> Document:
    with servers(0, order.partitions) as place:
        figures = outage.measure(place, order.rows, variants()[0], _say)
    return results.save(order.profile, figures, vars(order), small=order.small)


def _module(order: Order) -> Document:
    """Run a benchmark that is a command of its own."""
    command = [sys.executable, "-m", f"bench.{order.profile}"]
    command += ["--rows", str(order.rows), "--runs", str(order.runs)]
    if order.small:
        command.append("--small")
    if order.profile == "backfill" and not order.debezium:
        command += ["--without", "debezium"]
    subprocess.run(command, check=True)
    folder = results.SMALL if order.small else results.FOLDER
    return results.newest(folder)[order.profile]


_RUN: Final[dict[str, Callable[[Order], Document]]] = {
    "formats": _formats,
    "latency": _latency,
    "delivery-latency": _delivery_latency,
    "network": _network,
    "start": _start,
    "outage": _outage,
    "backfill": _module,
    "poll": _module,
    "consumer": _module,
}


if __name__ == "__main__":
    main()
