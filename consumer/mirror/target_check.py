"""Checks and settings of the target: what is done before anything is written."""

import logging
from collections.abc import Callable
from typing import Any, Final

import psycopg

from consumer.mirror.errors import MirrorError
from consumer.mirror.table_shape import cascades, hazards

# Of a mirror's transactions; the handlers of other consumers keep what their session
# has. A row that a policy hides is an error, and not one that is gone. Without
# array_nulls, a NULL of many rows that are written at once would be the text NULL.
SETTINGS: Final = (
    "SELECT pg_catalog.set_config('row_security', 'off', true),"
    " pg_catalog.set_config('array_nulls', 'on', true)"
)
_log: Final = logging.getLogger("consumer.mirror")


def refuse_cascades(
    connection: psycopg.Connection[Any], wanted: Callable[[str, str], bool]
) -> None:
    """Raise where a foreign key would change rows that are newer."""
    if drops := cascades(connection, wanted):
        raise MirrorError(
            "the target has foreign keys ON DELETE or ON UPDATE CASCADE, SET NULL or"
            " SET DEFAULT: tables arrive at different times, and these would change or"
            " delete newer rows",
            hint="disable them for the mirror's role: ALTER ROLE the_role"
            " SET session_replication_role = replica; or drop them in the target, since"
            " the stream has their effects in the source: " + " ".join(drops),
        )


def warn(
    connection: psycopg.Connection[Any], wanted: Callable[[str, str], bool]
) -> None:
    """Log what may refuse or double a change."""
    for hazard in hazards(connection):
        if wanted(hazard.schema, hazard.table):
            _log.warning(
                "%s.%s has the %s %s: %s",
                hazard.schema,
                hazard.table,
                hazard.kind,
                hazard.name,
                "it fires for mirrored changes, too"
                if hazard.kind == "trigger"
                else "partitions and tables arrive at different times, so it may refuse"
                " a change for a while, or permanently",
            )
