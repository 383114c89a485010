"""Prerequisites of Spark on this machine, checked before anything is created."""

from collections.abc import Iterator
from typing import Final

from walstream.config import Config
from walstream.errors import ConfigError, Repair, WalstreamError
from walstream.spark import session

_INSTALLED: Final = frozenset({"pyspark", "java"})


Obstacle = tuple[str, WalstreamError]
"""A finding's code, and the error that `run` would end with."""


def on_this_machine(config: Config) -> Iterator[Obstacle]:
    """Yield what lacks for Spark to start."""
    settings = session.Settings(config.spark.master, config.spark.conf)
    for code, check in (
        ("pyspark", session.check_pyspark),
        ("java", session.check_java),
        ("spark", lambda: session.check(settings)),
    ):
        try:
            check()
        except ConfigError as error:
            yield code, _or_without(error) if code in _INSTALLED else error


def _or_without(error: ConfigError) -> ConfigError:
    """Return a message that a stream alone needs nothing of it."""
    hint = f'{error.hint}; or write backfill = "never", which needs none: then'
    hint += " existing rows are not sent"
    return ConfigError(str(error.args[0]), hint=hint, repair=Repair(then=hint))
