"""Numbers in JSON that people and scripts read.

An LSN as PostgreSQL prints it; a system identifier as text, since readers of JSON take
numbers above 2**53 for floats.
"""

from typing import Annotated

from pydantic import PlainSerializer, WithJsonSchema

from walstream.lsn import Lsn, show

ShownLsn = Annotated[
    Lsn,
    PlainSerializer(show, return_type=str),
    WithJsonSchema(
        {"type": "string", "pattern": "^[0-9A-F]{1,8}/[0-9A-F]{1,8}$"},
        mode="serialization",
    ),
]
SystemIdentifier = Annotated[
    int,
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]+$"}, mode="serialization"),
]
