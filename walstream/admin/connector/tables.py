"""Tables that are sent: the publication as it is, and what a connector leaves out.

A slot reads no publication that was made after what it decodes, so that of the
connector is used as it is. Its lists are of the connector alone, unless it made the
publication by them. What they leave out has no topic, or a handler drops it; where
neither says the same, the configuration names a publication that has to be made first:
nothing that was left out is sent.
"""

import re
from dataclasses import dataclass
from typing import Final

from walstream.admin.connector.draft import Draft
from walstream.admin.connector.name_pattern import (
    Inexact,
    is_literal,
    patterns,
    split,
)
from walstream.records.router import matches

DEFAULT_PUBLICATION: Final = "dbz_publication"
DEFAULT_SLOT: Final = "debezium"
_OWN: Final = "_walstream"  # added to a slot's name
_LONGEST: Final = 40  # of it: a publication has a twin, and a slot copies
_CASE: Final = "case counts here"
_AS_IT_IS: Final = "the publication is read as it is"
_MAKE: Final = "make a publication of the tables that are wanted"
_ADDED: Final = (
    "for a table that comes later: ALTER PUBLICATION … ADD TABLE …, which Debezium did "
    "at its start"
)
_FOUR: Final = (
    "schema.include.list",
    "schema.exclude.list",
    "table.include.list",
    "table.exclude.list",
)


@dataclass(slots=True)
class _List:
    """One of the four lists, read."""

    key: str
    names: list[str]  # patterns
    inexact: str = ""  # why there are none

    @classmethod
    def of(cls, draft: Draft, key: str) -> "_List":
        dots = 1 if key.startswith("table") else 0
        names: list[str] = []
        for expression in split(draft.get(key)):
            try:
                names += patterns(expression, dots)
            except Inexact as error:
                return cls(
                    key, [], f"{expression!r} cannot be written as a pattern: {error}"
                )
        if dots == 0:
            names = [f"{name}.*" for name in names]
        return cls(key, names)


def adopts(draft: Draft) -> bool:
    """Return whether walstream can take the connector's slot over."""
    return draft.get("plugin.name", "decoderbufs").lower() == "pgoutput"


def own_publication(draft: Draft) -> str:
    """Name a publication that has to be made before the slot is taken over."""
    return draft.get("slot.name", DEFAULT_SLOT)[:_LONGEST] + _OWN


def translate(draft: Draft) -> None:
    """Write slot, publication and tables."""
    slot = draft.get("slot.name", DEFAULT_SLOT)
    lists = _considered(draft)
    if adopts(draft):
        draft.put("slot.name", "source", "slot", slot)
        if draft.has("plugin.name"):
            draft.became("plugin.name", "pgoutput, which walstream always uses")
        _of_publication(draft, lists)
        return
    draft.put("slot.name", "source", "slot", own_publication(draft), "a new slot")
    draft.decide(
        "plugin.name",
        f"the slot {slot!r} is of decoderbufs, which walstream does not read: it "
        "streams from a new slot beside it, with all existing rows first",
    )
    draft.put("publication.name", "source", "publication", own_publication(draft))
    _of_patterns(draft, lists)


def _considered(draft: Draft) -> list[_List]:
    """Return the lists that count: of two of a kind, what is included."""
    found = []
    for kind in ("schema", "table"):
        include, exclude = f"{kind}.include.list", f"{kind}.exclude.list"
        if draft.get(include):
            found.append(_List.of(draft, include))
            if draft.has(exclude):
                draft.inert(exclude, f"{include} is there, and alone counts")
        elif draft.get(exclude):
            found.append(_List.of(draft, exclude))
    for key in _FOUR:
        if draft.has(key) and not draft.get(key):
            draft.inert(key, "it is empty")
    return found


def _of_publication(draft: Draft, lists: list[_List]) -> None:
    name = draft.get("publication.name", DEFAULT_PUBLICATION)
    mode = draft.get("publication.autocreate.mode", "all_tables").lower()
    draft.tables["source"]["tables"] = []
    if draft.has("publication.autocreate.mode"):
        remark = _ADDED if mode == "filtered" else ""
        what = f"[{draft.header('source')}] tables = []: {_AS_IT_IS}"
        draft.became("publication.autocreate.mode", what, remark)
    if mode == "filtered":
        for one in lists:
            draft.became(one.key, f"{_AS_IT_IS}: Debezium made it by this list")
        draft.put("publication.name", "source", "publication", name)
        return
    if all(_left_out(draft, one, lists) for one in lists):
        draft.put("publication.name", "source", "publication", name)
        return
    draft.tables["source"]["publication"] = own_publication(draft)
    literal = name.replace("'", "''")
    draft.decide(
        "publication.name",
        f"{name!r} may hold more tables than the connector sends: if it does not, "
        f"write its name; otherwise make {own_publication(draft)!r}, which the file "
        "names, while Debezium runs",
        "SELECT schemaname, tablename FROM pg_publication_tables"  # noqa: S608 - shown
        f" WHERE pubname = '{literal}';",
    )


def _left_out(draft: Draft, one: _List, lists: list[_List]) -> bool:
    """Leave out what a list leaves out, or say that only a publication can."""
    if one.key.endswith("exclude.list") and not one.inexact:
        draft.handlers.append({"kind": "filter", "tables": one.names, "operations": []})
        draft.became(
            one.key, f"handler filter: {_shown(one.names)} pass nothing", _CASE
        )
        return True
    tables = [found for found in lists if found.key == "table.include.list"]
    if tables and not tables[0].inexact and all(map(is_literal, tables[0].names)):
        schemas = [found for found in lists if found.key == "schema.include.list"]
        if not any(found.inexact for found in schemas):
            names = [name for name in tables[0].names if _within(name, schemas)]
            if names:
                draft.chosen = names
                draft.became(one.key, f"topics of {_shown(names)} alone", _CASE)
                return True
    draft.decide(one.key, f"{_why(one)}: {_MAKE}", _creation(draft, lists))
    return False


def _why(one: _List) -> str:
    return one.inexact or f"{_shown(one.names)} is of the connector alone"


def _within(name: str, schemas: list[_List]) -> bool:
    return all(any(matches(own, name) for own in one.names) for one in schemas)


def _of_patterns(draft: Draft, lists: list[_List]) -> None:
    """Write the tables of a slot that walstream makes."""
    included = [one for one in lists if one.key.endswith("include.list")]
    draft.tables["source"]["tables"] = ["*.*"]
    if draft.has("publication.autocreate.mode"):
        draft.inert("publication.autocreate.mode", "walstream makes its publication")
    for one in lists:
        if one not in included and not one.inexact:
            _left_out(draft, one, lists)
        elif one.inexact or len(included) > 1:
            draft.tables["source"]["tables"] = []
            draft.decide(one.key, f"{_why(one)}: {_MAKE}", _creation(draft, lists))
        else:
            draft.put(one.key, "source", "tables", one.names, _CASE)


def _creation(draft: Draft, lists: list[_List]) -> str:
    """Write what makes a publication of the tables that are wanted."""
    name = own_publication(draft)
    root = draft.get("publish.via.partition.root", "false").lower() == "true"
    suffix = " WITH (publish_via_partition_root = true)" if root else ""
    whom = _whom(lists)
    return f'CREATE PUBLICATION "{name}" FOR {whom}{suffix};'


def _whom(lists: list[_List]) -> str:
    """Name what a publication is of, where its statement can say it."""
    schemas: set[str] = set()
    for one in lists:
        for name in one.names if one.key.endswith("include.list") else ():
            schema, _, table = name.partition(".")
            if table != "*" or not is_literal(schema):
                return "TABLE …"
            schemas.add(schema)
    if len(lists) > 1 or not schemas or any(one.inexact for one in lists):
        return "TABLE …"
    return "TABLES IN SCHEMA " + ", ".join(map(_quoted, sorted(schemas)))


def _quoted(name: str) -> str:
    return name if re.fullmatch("[a-z_][a-z0-9_]*", name) else f'"{name}"'


def _shown(names: list[str]) -> str:
    return ", ".join(names) or "no table"
