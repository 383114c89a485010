"""The configuration that an instance goes by, and when it is read again.

All of it is read on request, by the control socket or SIGHUP; what it refers to is read
by itself when a server refuses a password or a certificate.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

import structlog

from walstream.config import Config
from walstream.errors import WalstreamError
from walstream.service.config_changes import ConfigReader, Reloaded, own_changes
from walstream.service.feature_support import refuse_unsupported
from walstream.service.fleet import Fleet
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR

_RENEW_S: Final = 10.0
_log = structlog.get_logger()


class ConfigFollower(Protocol):
    """User of the configuration beside the fleet: the supervisor."""

    def accept(self, config: Config) -> None:
        """Apply its addresses; raise WalstreamError if one is not available."""

    def take(self, config: Config) -> None:
        """Go by the rest of it."""


class Reloader:
    """Reads the configuration again, and makes the fleet and its follower go by it."""

    def __init__(
        self,
        config: Config,
        reader: ConfigReader | None,
        fleet: Fleet,
        follower: ConfigFollower,
    ) -> None:
        """Without a `reader` nothing is read again."""
        self.config = config
        self._reader = reader
        self._fleet = fleet
        self._follower = follower
        self._renew_at = 0.0

    def reload(self) -> Reloaded:
        """Apply the whole file as it is now, on request."""
        if self._reader is None:
            return Reloaded("it ends by itself and reads no configuration again", 2)
        return self._follow(self._reader, asked=True)

    def heed_refusals(self) -> None:
        """Read passwords again for a refused source, before it stops."""
        if self._reader is None:
            return
        if refused := [one for one in self._fleet.workers if one.was_refused]:
            self._follow(self._reader, asked=False)
            for worker in refused:
                if worker.was_refused:  # nothing else was read for it
                    worker.try_again()
        # a sink's client tries again by itself: what it goes by is looked at at times
        now = runtime.monotonic()
        sinks = any(one.history.sink_is_refused for one in self._fleet.everyone)
        if sinks and now >= self._renew_at:
            self._renew_at = now + _RENEW_S
            self._follow(self._reader, asked=False)

    def _follow(self, reader: ConfigReader, *, asked: bool) -> Reloaded:
        """Apply what is read, or keep the old one if that fails.

        If `asked`, the whole file is read.
        """
        before = self.config
        try:
            config = reader.whole() if asked else reader.references()
            refuse_unsupported(config)
            self._follower.accept(config)
            reader.keep()
        except WalstreamError as error:
            problem = before.secrets.scrub(str(error))
            _log.error(
                "the new configuration is refused: the old one stays in effect",
                **{ERROR: problem},
                hint=f"correct it, then: {before.command('walstream reload')}",
            )
            return Reloaded(problem, error.exit_code)
        if config.state != before.state:
            _log.warning(
                "another state folder takes effect at the next start",
                hint="it needs the positions: stop walstream, and move"
                f" {before.state} to {config.state}",
            )
            config = config.model_copy(update={"state": before.state})
        self.config = config
        self._follower.take(config)
        steps = list(self._fleet.take(config, asked=asked))
        found = Reloaded(
            changes=tuple(sorted({*own_changes(before, config), *_keys(steps)})),
            lines=tuple(line for line, _ in steps),
        )
        if asked or found.changes:
            _log.info(
                "the configuration was read",
                changes=list(found.changes),
                lines=list(found.lines),
            )
        return found


def _keys(steps: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    for _, keys in steps:
        yield from keys
