"""The end of a run, `--until-lsn`, and what configuration goes with it."""

import os

from walstream.config import Config, PostgresSource, topology
from walstream.config.run_options import NOW
from walstream.errors import ConfigError
from walstream.lsn import parse, show


class RunEnd:
    """An LSN, `now`, or none: then everything goes."""

    def __init__(self, text: str) -> None:
        self.lsn = _read(text) if text else ""
        self._source = ""  # that the LSN belongs to
        self._servers: set[tuple[str, str]] = set()  # where that was at first

    def check(self, config: Config) -> None:
        """Raise ConfigError for a configuration, also a reloaded one, without this end.

        An LSN belongs to one server: to that of the first configuration's source.
        """
        if not self.lsn:
            return
        for name, source in config.sources.items():
            if not isinstance(source, PostgresSource):
                raise ConfigError(
                    f"--until-lsn: source {name!r} is not a postgres source, and has no"
                    " LSN",
                    hint="use a configuration with postgres sources only",
                )
        if self.lsn == NOW:
            return
        if len(config.sources) > 1:
            raise ConfigError(
                "--until-lsn: an LSN belongs to one server, and there are"
                f" {len(config.sources)} sources",
                hint="write --until-lsn now",
            )
        for name, source in config.postgres_sources.items():
            servers = topology.servers_of(source, os.environ)
            self._servers = self._servers or servers
            self._source = self._source or name
            if name != self._source:
                raise ConfigError(
                    f"--until-lsn: the LSN belongs to source {self._source!r}, and"
                    f" {name!r} is another one",
                    hint="end this run, and start one with an LSN of its server",
                )
            if servers != self._servers:
                raise ConfigError(
                    f"--until-lsn: the LSN belongs to the server of before, and the dsn"
                    f" of source {name!r} leads to another one",
                    hint="end this run, and start one with an LSN of that server",
                )


def _read(text: str) -> str:
    if text.lower() == NOW:
        return NOW
    try:
        return show(parse(text))
    except ValueError:
        raise ConfigError(
            f"--until-lsn: {text!r} is neither an LSN, as 0/16B3748, nor now"
        ) from None
