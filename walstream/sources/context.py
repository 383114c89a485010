"""Context that a worker gives to the runner of its source."""

from dataclasses import dataclass

from walstream.config import Config
from walstream.config.run_options import Options
from walstream.pipeline.shutdown import Stop
from walstream.state.store import LmdbStore


@dataclass(frozen=True, slots=True)
class SourceContext:
    """One source of a configuration, its state, and how it was started."""

    config: Config
    name: str  # of the source
    positions: LmdbStore  # of the source; of a detached sink, its own
    options: Options
    stop: Stop
