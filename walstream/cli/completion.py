"""Shell completion from the configuration: names of sources and sinks.

What fails or takes longer than a second completes nothing: a shell at work wants no
error. What servers know is `completion_servers`'s.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import typer

from walstream.config import Config, KafkaSinkConfig, load

TIMEOUT_S: Final = 1.0

Names = Callable[[Config, typer.Context], Iterable[str]]


def sources(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the sources of the configuration."""
    return complete(ctx, incomplete, lambda config, _: config.sources)


def polled_sources(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the sources that are polled."""
    return complete(ctx, incomplete, lambda config, _: config.sql_sources)


def sinks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the Kafka sinks."""
    return complete(ctx, incomplete, _sinks)


def complete(ctx: typer.Context, incomplete: str, names: Names) -> list[str]:
    """Return the names that begin so; none if that fails, or takes too long."""
    found: list[str] = []

    def ask() -> None:
        try:
            found.extend(names(_config(ctx), ctx))
        except Exception:  # noqa: BLE001 - whatever it is, a shell has no use for it
            found.clear()

    logging.disable(logging.CRITICAL)  # a word on stderr would stand in the prompt
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(TIMEOUT_S)
    if not thread.is_alive():
        logging.disable(logging.NOTSET)
    return sorted(name for name in list(found) if name.startswith(incomplete))


def _config(ctx: typer.Context) -> Config:
    """Load the file that the command line names so far."""
    if ctx.params.get("brokers"):
        return Config()
    file = ctx.params.get("file")
    return load(None if file is None else Path(file))


def _sinks(config: Config, _: typer.Context) -> Iterable[str]:
    for name, sink in config.sinks.items():
        if isinstance(sink, KafkaSinkConfig):
            yield name
