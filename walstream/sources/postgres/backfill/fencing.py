"""Fencing of an earlier start's tasks: afterwards none can send a row.

Those of this machine are waited for, by their leash. Those elsewhere cannot be asked:
the session whose snapshot they read is ended, and their transactions are fenced. A task
takes its transaction before it imports the snapshot: so one that is not fenced by this
reads nothing.
"""

import structlog

from walstream.config import Config
from walstream.kafka.fencing import fence as fence_ids
from walstream.pipeline.shutdown import Stop
from walstream.postgres import snapshot_holder
from walstream.sources.postgres.backfill.chunk import transactional_id
from walstream.sources.postgres.backfill.progress import Elsewhere
from walstream.sources.postgres.backfill.task_factory import transactions
from walstream.sources.routers import Routers

_log = structlog.get_logger()


def fence(
    config: Config, source: str, left: Elsewhere, header: bytes, stop: Stop
) -> None:
    """Fence what ran elsewhere; `header` says where the source's records come from."""
    settings = config.postgres_source(source)
    snapshot_holder.end(settings.dsn, left.session)
    _log.info("tasks elsewhere are fenced", chunks=left.chunks)
    for name, sink in Routers(config, source).configs.items():
        named = transactions(settings.slot, name, header)
        fence_ids(
            sink.producer,
            (transactional_id(named, chunk) for chunk in range(1, left.chunks + 1)),
            lambda: stop.requested,
        )
