"""A schema of Kafka Connect as a tree, and the JSON that its JsonConverter writes."""

from dataclasses import dataclass, replace

from walstream.formats.debezium.json_text import json_text


@dataclass(frozen=True, slots=True)
class Schema:
    """One node of the tree; what is empty is not written."""

    type: str
    optional: bool = False
    name: str = ""
    version: int = 0
    doc: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    default: str = ""  # as JSON
    fields: tuple[tuple[str, "Schema"], ...] = ()  # of a struct
    items: "Schema | None" = None  # of an array
    keys: "Schema | None" = None  # of a map
    values: "Schema | None" = None

    def as_optional(self) -> "Schema":
        """Return the schema of the same that may be null."""
        return self if self.optional else replace(self, optional=True)

    def with_default(self, default: str) -> "Schema":
        """Return the schema with a default, as JSON."""
        return replace(self, default=default)

    def json(self) -> str:
        """Write it."""
        return f"{{{self._body()}}}"

    def _body(self) -> str:
        parts = [f'"type":"{self.type}"']
        if self.items is not None:
            parts.append(f'"items":{self.items.json()}')
        if self.keys is not None and self.values is not None:
            parts.append(f'"keys":{self.keys.json()},"values":{self.values.json()}')
        if self.type == "struct":
            fields = [
                f'{{{schema._body()},"field":{json_text(name)}}}'  # noqa: SLF001 - its own
                for name, schema in self.fields
            ]
            parts.append(f'"fields":[{",".join(fields)}]')
        parts.append(f'"optional":{"true" if self.optional else "false"}')
        if self.name:
            parts.append(f'"name":{json_text(self.name)}')
        if self.version:
            parts.append(f'"version":{self.version}')
        if self.doc:
            parts.append(f'"doc":{json_text(self.doc)}')
        if self.parameters:
            told = [f"{json_text(k)}:{json_text(v)}" for k, v in self.parameters]
            parts.append(f'"parameters":{{{",".join(told)}}}')
        if self.default:
            parts.append(f'"default":{self.default}')
        return ",".join(parts)


def text(name: str = "", **parameters: str) -> Schema:
    """Return the schema of a string; with a name, the first version of that."""
    return Schema(
        "string",
        name=name,
        version=1 if name else 0,
        parameters=tuple(parameters.items()),
    )


def number(kind: str, name: str = "") -> Schema:
    """Return the schema of a number, likewise."""
    return Schema(kind, name=name, version=1 if name else 0)


def struct(name: str, *fields: tuple[str, Schema], version: int = 1) -> Schema:
    """Return the schema of a struct."""
    return Schema("struct", name=name, version=version, fields=fields)


def array(items: Schema) -> Schema:
    """Return the schema of an array."""
    return Schema("array", items=items)
