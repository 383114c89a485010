"""What would stop a first start, asked before it leaves anything behind."""

from collections.abc import Iterator, Mapping

from walstream.errors import PermissionLacking, WalstreamError
from walstream.postgres import preflight, privileges
from walstream.postgres.capture import Capture
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection


def check(
    connection: Connection, capture: Capture, facts: Mapping[str, TableFacts]
) -> None:
    """Refuse a start that could not create its publications and its slot."""
    for _, obstacle in obstacles(connection, capture, facts):
        raise obstacle


def obstacles(
    connection: Connection, capture: Capture, facts: Mapping[str, TableFacts]
) -> Iterator[tuple[str, WalstreamError]]:
    """Give all that stands in the way, each with a code, the first met first."""
    for obstacle in capture.obstacles(connection, privileges.look(connection), facts):
        lacks_right = isinstance(obstacle, PermissionLacking)
        yield f"publication-{'right' if lacks_right else 'missing'}", obstacle
    yield from preflight.lacking(connection, slot=True)
