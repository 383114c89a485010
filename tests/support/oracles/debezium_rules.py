"""Where walstream's records may differ from a real Debezium's: the documented table.

Each rule has the name of its row in docs/debezium.md, and says which differences that
row explains. What no rule explains is a defect.
"""

import json
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Final

from tests.support.oracles.json_difference import ORDER, Difference, Path
from walstream.formats.debezium import DebeziumOptions

_PAGE: Final = File(__file__).parents[3] / "docs" / "debezium.md"
_HEADING: Final = "## Where walstream differs"
_TIMES: Final = {"ts_ms", "ts_us", "ts_ns"}
_OF_SNAPSHOT: Final = {"snapshot", "lsn", "__lsn", "txId", *_TIMES}
_CALENDAR: Final = re.compile("date|timestamp")
_SECONDS: Final = re.compile(r'"(P.*[HMT])(-?[\d.]+)S"')
_INFINITE: Final = {"9223372036825200000", "-9223372036832400000"}
_LEAST, _GREATEST = str(-(2**63)), str(2**63 - 1)
_INFINITE_INTERVALS: Final = {_LEAST, _GREATEST, '"infinity"', '"-infinity"'}
_DATES: Final = re.compile(r"(date|timestamp|timestamp\(\d\)) ?(with.*)?\[\]")


@dataclass(frozen=True)
class Column:
    """What the catalog said of a column, at some time of the run."""

    type: str  # as format_type prints it
    default: str = ""  # all that it had, one a line
    generated: bool = False


@dataclass(frozen=True)
class TableOf:
    """What the rules have to know of the table that a record is of."""

    columns: Mapping[str, Column]
    is_partition: bool
    key: str = "primary key"  # or "index", "nothing", "unique index", ""


@dataclass(frozen=True)
class Found:
    """A difference, and the record that it is in."""

    where: str  # topic and number, for messages
    difference: Difference  # its path begins with key, value, header or partition
    table: TableOf
    options: DebeziumOptions
    unwrapped: bool = False
    moved: bool = False  # to another key
    existing: bool = False  # before the stream began

    @property
    def path(self) -> Path:
        """The path without the names of a schema's own members."""
        return tuple(one for one in self.difference.path if one != "fields")

    @property
    def theirs(self) -> str:
        return _shown(self.difference.theirs)

    @property
    def ours(self) -> str:
        return _shown(self.difference.ours)

    @property
    def name(self) -> str:
        """The column's name; "" if it is in none."""
        at = 2 if self.unwrapped or self.path[:1] == ("key",) else 3
        inside = at == 2 or self.path[2:3] in {("before",), ("after",)}
        return self.path[at] if inside and len(self.path) > at else ""

    @property
    def column(self) -> Column:
        return self.table.columns.get(self.name, Column(""))

    @property
    def in_schema(self) -> bool:
        return self.path[1:2] == ("schema",)

    def __str__(self) -> str:
        told = f"{self.column.type}: " if self.column.type else ""
        return (
            f"{self.where}: {'/'.join(self.path)}: {told}"
            f"{self.theirs[:300]} became {self.ours[:300]}"
        )


def _shown(node: object) -> str:
    return node if isinstance(node, str) else json.dumps(node, ensure_ascii=False)


Rule = Callable[[Found], bool]


def _is_message(found: Found) -> bool:
    return ".message/" in found.where


def _is_transaction(found: Found) -> bool:
    return ".transaction/" in found.where


def _ends(*names: str) -> Rule:
    return lambda found: found.path[-len(names) :] == names


def _of_header(name: str) -> Rule:
    return lambda found: found.path[0] == "header" and found.path[1].startswith(name)


def _of_key(kind: str) -> Rule:
    def explains(found: Found) -> bool:
        return found.table.key == kind and found.path[0] in {"key", "header"}

    return explains


def _of_type(pattern: str, *, null: bool = False) -> Rule:
    compiled = re.compile(pattern)

    def explains(found: Found) -> bool:
        fits = compiled.fullmatch(found.column.type) is not None
        return fits and not (null and found.theirs != "null")

    return explains


def _of_default(pattern: str) -> Rule:
    def explains(found: Found) -> bool:
        # in Avro it also has null stand behind, or before, what the default is of
        is_default = found.in_schema and found.path[-1] in {"default", "null"}
        told = re.search(pattern, found.column.default, re.MULTILINE)
        return is_default and told is not None

    return explains


def _wrapped(found: Found) -> bool:
    return _of_type(r"timestamp\S* without.*")(found) and found.ours in _INFINITE


def _nanoseconds(found: Found) -> bool:
    is_time = _of_type(r"timestamp\S* without.*")(found)
    return (
        is_time
        and found.options.time == "nanoseconds"
        and found.ours in {_LEAST, _GREATEST}
    )


def _default_for_null(found: Found) -> bool:
    has_default = bool(found.column.default)
    is_null = found.difference.ours == "null"
    return has_default and is_null and not found.in_schema


def _not_sent(found: Found) -> bool:
    is_text = found.options.binary != "bytes" and found.theirs == "null"
    return is_text and found.column.type == "bytea" and not found.in_schema


def _pairs(found: Found) -> bool:
    if "hstore" not in found.column.type or found.in_schema:
        return False
    if found.path[-1] == ORDER:
        return sorted(json.loads(found.theirs)) == sorted(json.loads(found.ours))
    theirs, ours = (json.loads(json.loads(one)) for one in (found.theirs, found.ours))
    return bool(theirs == ours)


def _shortest(found: Found) -> bool:
    if not {found.theirs[:1], found.ours[:1]} <= set("-0123456789"):
        return False
    size = "f" if found.column.type.startswith("real") else "d"
    theirs, ours = (struct.pack(size, float(one)) for one in (found.theirs, found.ours))
    return theirs == ours and len(found.ours) <= len(found.theirs)


def _labels(found: Found) -> bool:
    theirs, ours = found.theirs.rstrip('"'), found.ours.rstrip('"')
    is_list = found.in_schema and found.path[-1] == "allowed"
    return is_list and ours.startswith(f"{theirs},")


def _rounded(found: Found) -> bool:
    both = [_SECONDS.fullmatch(one) for one in (found.theirs, found.ours)]
    theirs, ours = ((one[1], round(float(one[2]), 6)) if one else None for one in both)
    return theirs is not None and theirs == ours


def _tombstone(found: Found) -> bool:
    is_whole = found.unwrapped and found.path == ("value",)
    return is_whole and found.difference.theirs == "null" and found.ours == "null"


def _calendar(found: Found) -> bool:
    return found.existing and _CALENDAR.match(found.column.type) is not None


RULES: Final[dict[str, Rule]] = {
    "`source.sequence`": _ends("source", "sequence"),
    "`transaction.total_order`": lambda found: (
        _ends("transaction", "total_order")(found)
        or (_is_message(found) and found.path[-1] == "transaction")
    ),
    "header `walstream-position`": _of_header("walstream-position"),
    "header `walstream-source`": _of_header("walstream-source"),
    "header `walstream-era`": _of_header("walstream-era"),
    "headers `__debezium.context.*`": _of_header("__debezium.context."),
    "`source.ts_ms` of a message outside of a transaction": lambda found: (
        _is_message(found)
        and found.path[-2:-1] == ("source",)
        and found.path[-1] in _TIMES
    ),
    "messages in `event_count` of END": lambda found: (
        _is_transaction(found)
        and found.path[-1] != ORDER
        and not {"event_count", "data_collections"}.isdisjoint(found.path)
    ),
    "`id` in BEGIN of a transaction with an origin": lambda found: (
        _is_transaction(found) and found.path[-1] == "id" and ':0"' in found.theirs
    ),
    "order of `data_collections`": lambda found: (
        _is_transaction(found) and found.path[-2:] == ("data_collections", ORDER)
    ),
    "existing rows of a partition that is published by its root": lambda found: (
        found.path == ("topic",) and found.table.is_partition
    ),
    "`source.version`": _ends("source", "version"),
    "`source` of an existing row": lambda found: (
        found.existing and found.path[-1].removeprefix("__source_") in _OF_SNAPSHOT
    ),
    "existing rows: dates and timestamps before 1582, and infinite dates": _calendar,
    "existing rows: generated columns": lambda found: (
        found.existing and found.column.generated and found.difference.ours is None
    ),
    "key under REPLICA IDENTITY USING INDEX": _of_key("index"),
    "key under REPLICA IDENTITY NOTHING": _of_key("nothing"),
    "key of a table without a primary key": _of_key("unique index"),
    "Truncate": _ends("partition"),
    "numeric(p,-s)": _of_type(r"numeric\(\d+,-\d+\)"),
    "`name`": _of_type("name", null=True),
    "timestamp after 294247, `microseconds`": _wrapped,
    "timestamp before 1677 or after 2262, and infinity, `nanoseconds`": _nanoseconds,
    "regclass and its like, `unknown`": _of_type(r"reg.*"),
    "infinite interval": lambda found: (
        _of_type("interval")(found) and found.ours in _INFINITE_INTERVALS
    ),
    "labels that were added to an enum": _labels,
    "fraction of a second of an interval in ISO 8601": _rounded,
    "unchanged TOAST value of a row whose key changes": lambda found: (
        found.moved and found.theirs == f'"{found.options.unavailable}"'
    ),
    "unchanged bytea in base64": _not_sent,
    "null in a column with a default": _default_for_null,
    "default that is an expression": _of_default(r"^[^']*\(|\|\||CURRENT"),
    "default with a quote in it": _of_default("''"),
    "bit[]": _of_type(r"bit\S*\[\]"),
    "time[]": _of_type(r"time\S* without time zone\[\]"),
    "arrays of dates and times: infinities, and years before 1582": lambda found: (
        _DATES.fullmatch(found.column.type) is not None
    ),
    "hstore": _pairs,
    "sparsevec": lambda found: (
        found.column.type.startswith("sparsevec") and found.path[-1] == ORDER
    ),
    "float that has no shortest form before Java 19": _shortest,
    "unwrapped delete, `tombstone`": _tombstone,
}
"""By the row of the table."""
NOT_IN_RECORDS: Final = {
    "BEGIN and END",  # the workload's transactions all have records
    "numeric NaN and infinities, `precise`",  # null in both
    "unchanged TOAST value of numeric, geometry and other arrays",  # likewise
    "sparsevec of more than 32,767 dimensions",  # no server here has the type
    # only if SET NOT NULL comes between a change and its reading
    (
        "null in a column that has become NOT NULL since, or a large value gone by its"
        " reading"
    ),
    # the workload has no constraint that is NOT VALID
    "existing nulls, NOT NULL that is NOT VALID (PostgreSQL 18)",
    # only if the facts were asked late, which test_debezium_backlog lets happen
    "column that was renamed or altered after the row",
}
"""Rows that no difference of two records shows."""


def documented() -> list[str]:
    """Return the first cells of the table in docs/debezium.md."""
    _, _, behind = _PAGE.read_text("utf-8").partition(_HEADING)
    rows = [line for line in behind.splitlines() if line.startswith("| ")]
    return [row.split(" | ")[0].removeprefix("| ") for row in rows if "---" not in row][
        1:
    ]


def is_processing_time(found: Found) -> bool:
    """Tell whether it is the clock of who processed the record."""
    if found.unwrapped or _is_transaction(found):
        return False
    return len(found.path) == 3 and found.path[2] in _TIMES
