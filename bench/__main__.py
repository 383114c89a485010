"""`python -m bench`: the drain rate of a backlog, beside pg_recvlogical on the same.

Both read the same transactions from the same server, one after the other, several
times; the ratio is what counts, since machines are noisy.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.drain import Backlog, Figure, limit, walstream
from walstream.local import LocalKafka, LocalPostgres


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--per-transaction", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    wanted = parser.parse_args()
    console = Console()
    figures: dict[str, list[Figure]] = {"pg_recvlogical": [], "walstream": []}
    with LocalPostgres() as postgres, LocalKafka() as kafka:
        backlog = Backlog(postgres, wanted.rows, wanted.per_transaction)
        console.print(f"writing {wanted.rows} rows, {wanted.per_transaction} each")
        backlog.write(walstream.begin(postgres, kafka, wanted.runs))
        for run in range(wanted.runs):
            figures["pg_recvlogical"].append(limit(backlog, run))
            figures["walstream"].append(walstream.drain(backlog, run))
            console.print(f"run {run + 1} of {wanted.runs} done")
    console.print(table(figures))
    console.print(f"written to {save(figures, vars(wanted))}")


def table(figures: dict[str, list[Figure]]) -> Table:
    shown = Table("what", "rows/s", "min", "max", "x limit", "CPU us/row", "RSS MB")
    limits = [figure.rows_per_s for figure in figures["pg_recvlogical"]]
    for name, runs in figures.items():
        rates = [figure.rows_per_s for figure in runs]
        ratios = [rate / top for rate, top in zip(rates, limits, strict=True)]
        shown.add_row(
            name,
            *(f"{figure:,.0f}" for figure in (median(rates), min(rates), max(rates))),
            f"{median(ratios):.2f}",
            f"{median([figure.cpu_us_per_row for figure in runs]):.1f}",
            f"{max(figure.rss_mb for figure in runs):.0f}",
        )
    return shown


def median(figures: list[float]) -> float:
    return statistics.median(figures)


def save(figures: dict[str, list[Figure]], wanted: dict[str, Any]) -> Path:
    folder = Path(__file__).with_name("results")
    folder.mkdir(exist_ok=True)
    path = folder / time.strftime("drain-%Y%m%dT%H%M%S.json")
    shown = {name: [vars(run) for run in runs] for name, runs in figures.items()}
    path.write_text(json.dumps({"wanted": wanted, "figures": shown}, indent=2))
    return path


main()
