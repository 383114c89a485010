"""Single message transforms, in their order: what each becomes."""

from typing import Final

from walstream.admin.connector import outbox
from walstream.admin.connector.draft import Draft
from walstream.admin.connector.records import choices, converters, truth
from walstream.admin.connector.topic_route import TopicRoute

_CUSTOM: Final = (
    "walstream has no such transform: records stay as they are without it; a custom "
    "handler (docs/handlers.md) can do it"
)
_ADVICE: Final = {
    "io.debezium.transforms.Filter": "write a handler filter, by operation or by value",
    "io.debezium.transforms.ContentBasedRouter": "write a sink with a handler filter "
    "for each topic",
    "io.debezium.transforms.partitions.PartitionRouting": "rows would change their "
    "partitions: write partition_key in [sinks.kafka.topics.TABLE]",
    "org.apache.kafka.connect.transforms.ValueToKey": "write partition_key in "
    "[sinks.kafka.topics.TABLE]; the key is an object of these columns",
    "org.apache.kafka.connect.transforms.MaskField$Value": "write a handler mask",
}
_UNWRAP: Final = "io.debezium.transforms.ExtractNewRecordState"
_REGEX: Final = (
    "org.apache.kafka.connect.transforms.RegexRouter",
    "io.debezium.transforms.ByLogicalTableRouter",
)
_REPLACE: Final = "org.apache.kafka.connect.transforms.ReplaceField$Value"
_IDLE: Final = {  # options of an option
    "drop.fields.from.key": "drop.fields.header.name",
    "drop.fields.keep.schema.compatible": "drop.fields.header.name",
    "add.headers.prefix": "add.headers",
}
_OLD_DELETES: Final = {
    ("drop", True): "drop",
    ("drop", False): "tombstone",
    ("rewrite", True): "rewrite",
    ("rewrite", False): "rewrite-with-tombstone",
}


def names(draft: Draft) -> list[str]:
    """Return the aliases of the transforms, in their order."""
    return [one.strip() for one in draft.get("transforms").split(",") if one.strip()]


def unwraps(draft: Draft) -> bool:
    """Return whether records are rows without an envelope."""
    return _UNWRAP in _kinds(draft)


def _kinds(draft: Draft) -> list[str]:
    return [draft.get(f"transforms.{alias}.type") for alias in names(draft)]


def translate(draft: Draft) -> None:
    """Go through them; every option of theirs is accounted for."""
    aliases = names(draft)
    if draft.has("transforms"):
        draft.became("transforms", f"{', '.join(aliases) or 'none'}, one by one")
    if outbox.EVENT_ROUTER not in _kinds(draft):
        converters(draft)
    for alias in aliases:
        _Transform(draft, alias).translate()
    for key in draft.unspoken():
        if key.startswith("transforms."):
            draft.inert(key, "no transform of that name is in transforms")
        elif key.startswith("predicates") and draft.get(key):
            draft.decide(key, "walstream has no predicates")


class _Transform:
    """One of them."""

    def __init__(self, draft: Draft, alias: str) -> None:
        self._draft = draft
        self._alias = alias
        self._prefix = f"transforms.{alias}."
        self.kind = self.get("type")

    def get(self, name: str, default: str = "") -> str:
        return self._draft.get(self._prefix + name, default)

    def key(self, name: str) -> str:
        return self._prefix + name

    def translate(self) -> None:
        """Translate it by its kind, then account for what was left out."""
        for name in ("predicate", "negate"):
            if self.get(name):
                what = "walstream has no predicates: it is for every record"
                self._draft.decide(self.key(name), what)
        if self.kind in _REGEX:
            self._route()
        elif self.kind == _UNWRAP:
            self._unwrap()
        elif self.kind == outbox.EVENT_ROUTER:
            outbox.translate(self._draft, self._prefix)
        elif self.kind == _REPLACE and self._is_behind(_UNWRAP):
            self._replace()
        else:
            self._refuse(_ADVICE.get(self.kind, _CUSTOM))
        self._rest(f"an option of {self.kind.rpartition('.')[2]} without a counterpart")

    def _is_behind(self, kind: str) -> bool:
        """Return whether one of this kind comes before it."""
        place = names(self._draft).index(self._alias)
        return kind in _kinds(self._draft)[:place]

    def _rest(self, what: str) -> None:
        for key in self._draft.unspoken():
            if not key.startswith(self._prefix):
                continue
            if self._draft.get(key):
                self._draft.decide(key, what)
            else:
                self._draft.inert(key, "it is empty")

    def _refuse(self, what: str) -> None:
        named = self.kind.rpartition(".")[2] or "it has no type"
        self._draft.decide(self.key("type"), f"{named}: {what}")
        self._rest(f"an option of {named}, see its type")

    def _route(self) -> None:
        """Note a renaming of topics; what tables get is written at the end."""
        logical = self.kind == _REGEX[1]
        prefix = "topic." if logical else ""
        route = TopicRoute(
            self.get(f"{prefix}regex"), self.get(f"{prefix}replacement", "")
        )
        draft = self._draft
        if logical:
            unique = truth(draft, self.key("key.enforce.uniqueness"), default=True)
            if unique is not False:
                self._refuse(
                    "it adds a field to keys, so rows would go to other partitions; "
                    "without key.enforce.uniqueness walstream does the same"
                )
                return
            draft.became(self.key("key.enforce.uniqueness"), "keys stay as they are")
            draft.decide(
                self.key("type"),
                "in schemas the names stay those of the tables' own topics",
            )
            if draft.has(self.key("logical.table.cache.size")):
                draft.inert(self.key("logical.table.cache.size"), "a cache of Java's")
        draft.routes.append(route)
        if self._is_behind(outbox.EVENT_ROUTER):
            draft.decide(
                self.key(f"{prefix}regex"),
                "it renames the topics of events, too: write them as topic of the "
                "handler outbox",
            )
        for name in ("type", f"{prefix}regex", f"{prefix}replacement"):
            if draft.has(self.key(name)) and not (logical and name == "type"):
                draft.became(self.key(name), "the topics of tables")

    def _unwrap(self) -> None:
        draft = self._draft
        draft.became(self.key("type"), 'format = "debezium_row"')
        self._deletes()
        if self.get("add.fields"):
            fields = [one.strip() for one in self.get("add.fields").split(",")]
            fields = [*dict.fromkeys(one for one in fields if one)]
            draft.put(self.key("add.fields"), "debezium", "add_fields", fields)
        if draft.has(self.key("add.fields.prefix")):
            prefix = self.get("add.fields.prefix")
            draft.put(self.key("add.fields.prefix"), "debezium", "add_prefix", prefix)
        for name, owner in _IDLE.items():
            if not self.get(owner) and draft.has(self.key(name)):
                draft.inert(self.key(name), f"without {owner}")
        if self.get("add.headers"):
            draft.decide(
                self.key("add.headers"),
                "walstream adds no such headers: add_fields puts them into the row",
            )

    def _deletes(self) -> None:
        """Write how a delete is written, also from the options before Debezium 2.5."""
        draft = self._draft
        key = self.key("delete.tombstone.handling.mode")
        if mode := self.get("delete.tombstone.handling.mode").lower():
            if mode in choices("deletes"):
                draft.put(key, "debezium", "deletes", mode)
            else:
                draft.decide(key, f"none of {', '.join(choices('deletes'))}")
        old = {
            name: self.key(name) for name in ("delete.handling.mode", "drop.tombstones")
        }
        given = [one for one in old.values() if draft.has(one)]
        if not given:
            return
        if mode:
            for one in given:
                draft.inert(one, "delete.tombstone.handling.mode took its place")
            return
        drops = truth(draft, old["drop.tombstones"], default=True)
        handling = self.get("delete.handling.mode", "drop").lower()
        found = _OLD_DELETES.get((handling, drops is not False))
        for one in given:
            if found is None:
                draft.decide(one, "deletes as envelopes among rows: no such form")
            else:
                draft.put(one, "debezium", "deletes", found)

    def _replace(self) -> None:
        """Leave out columns of rows; a key keeps what its row has not."""
        draft = self._draft
        for name in ("exclude", "blacklist"):
            columns = [one.strip() for one in self.get(name).split(",") if one.strip()]
            if columns:
                draft.handlers.append({"kind": "drop_columns", "columns": columns})
                draft.became(
                    self.key(name), f"handler drop_columns: {', '.join(columns)}"
                )
        renamed = [one for one in ("renames",) if self.get(one)]
        if renamed:
            draft.decide(
                self.key("renames"),
                "a handler rename_columns renames them in the key, too",
            )
        for name in ("include", "whitelist"):
            if self.get(name):
                draft.decide(self.key(name), "name what is left out instead")
        draft.became(self.key("type"), "handlers")
