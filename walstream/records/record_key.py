"""Keys that a format makes itself, in the place of those of `records.key`."""

from dataclasses import replace

from walstream.formats import Encoder, RecordEncoder
from walstream.op import Table
from walstream.records.key import KeyForm
from walstream.records.router import Route


def with_own_key(route: Route, encoder: Encoder, table: Table) -> Route:
    """Return the route of a table with the keys of its encoder, if that makes any.

    A record without a key keeps its table's order all the same: the table's name then
    decides its partition.
    """
    if not isinstance(encoder, RecordEncoder):
        return route
    columns = route.key.columns
    table_key = table.full_name.encode()
    if not columns:
        form = KeyForm(lambda _: table_key, table_key, null=True)
    else:
        key = encoder.key(columns)
        form = KeyForm(lambda op: key.render(op) or table_key, table_key, columns)
    return replace(route, key=form)
