"""Prerequisites of Spark on this machine, checked before anything is created."""

from collections.abc import Iterator

from walstream.config import Config
from walstream.errors import ConfigError, WalstreamError
from walstream.spark import session

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
            yield code, error
