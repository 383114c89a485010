"""The handlers of a sink, kind by kind, with their defaults."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from walstream import plugins
from walstream.config.field import (
    ColumnName,
    DistinctNames,
    Names,
    Section,
    TablePattern,
    ValueTemplate,
)

_SHORTEST_SECRET: Final = 16
_KIND: Final = (
    "Kind of the handler: passthrough, drop_columns, rename_columns, mask, filter, "
    "outbox, or one that an installed package adds."
)
HandlerSettings = Mapping[str, object]
"""What a handler is told: the keys of its section, or its package's `options`."""

Operation = Literal["insert", "update", "delete", "truncate"]
OPERATIONS: Final[list[Operation]] = list(get_args(Operation))


class _Handler(Section):
    tables: list[TablePattern] = Field(
        default=["*"],
        description="Patterns of schema.table to which it applies.",
    )


class PassthroughHandler(_Handler):
    kind: Literal["passthrough"] = Field(description=_KIND)


class DropColumnsHandler(_Handler):
    kind: Literal["drop_columns"] = Field(description=_KIND)
    columns: Names = Field(description="Columns to leave out.")


class RenameColumnsHandler(_Handler):
    kind: Literal["rename_columns"] = Field(description=_KIND)
    columns: dict[str, Annotated[str, Field(min_length=1)]] = Field(
        min_length=1, description="New column names by the old ones."
    )


def _long(secret: str | None) -> str | None:
    if secret is not None and len(secret) < _SHORTEST_SECRET:
        message = f"is too short: write {_SHORTEST_SECRET} characters or more"
        raise ValueError(message)
    return secret


class MaskHandler(_Handler):
    kind: Literal["mask"] = Field(description=_KIND)
    columns: Names = Field(description="Columns whose values to hide.")
    text: str | None = Field(
        default=None, description="Text that replaces every value."
    )
    secret: Annotated[str | None, AfterValidator(_long)] = Field(
        default=None,
        repr=False,
        description="Instead of a text: the key of the HMAC-SHA256 that replaces a "
        "value.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.text is None) == (self.secret is None):
            message = "write either text or secret"
            raise ValueError(message)
        return self


class FilterHandler(_Handler):
    kind: Literal["filter"] = Field(description=_KIND)
    operations: list[Operation] = Field(
        default=OPERATIONS, description="Operations that pass."
    )
    column: str = Field(
        default="", description="Column whose value decides which rows pass, if any."
    )
    equals: str | None = Field(
        default=None, description="Value that passes, as PostgreSQL prints it."
    )
    one_of: DistinctNames | None = Field(
        default=None, description="Several values instead of one."
    )
    is_null: bool | None = Field(
        default=None,
        description="Instead of a value: true passes NULL, false passes everything "
        "but NULL.",
    )

    @model_validator(mode="after")
    def _one_test(self) -> Self:
        given = [self.equals, self.one_of, self.is_null]
        count = sum(test is not None for test in given)
        if count != bool(self.column):
            message = "write column with one of equals, one_of and is_null, or neither"
            raise ValueError(message)
        return self


class OutboxHandler(_Handler):
    kind: Literal["outbox"] = Field(description=_KIND)
    tables: list[TablePattern] = Field(
        min_length=1, description="Patterns of schema.table to which it applies."
    )
    id: ColumnName = Field(
        default="id", description="Column of the event's id, the record's header id."
    )
    key: ColumnName = Field(
        default="aggregateid", description="Column of the record's key."
    )
    route: ColumnName = Field(
        default="aggregatetype", description="Column that names the topic."
    )
    payload: ColumnName = Field(
        default="payload", description="Column of the record's value."
    )
    timestamp: str = Field(
        default="",
        description='Column of the record\'s time, a timestamp; "" is that of the '
        "commit.",
    )
    partition: str = Field(
        default="",
        description='Column of the record\'s partition, a number; "" lets the key '
        "decide.",
    )
    topic: ValueTemplate = Field(
        default="outbox.event.{value}",
        description="Topic of the records, of {value}, which is the route's.",
    )
    headers: dict[str, ColumnName] = Field(
        default={}, description="Columns of more headers, by the header's name."
    )
    envelope: dict[str, ColumnName] = Field(
        default={},
        description="Columns of fields beside the field payload, by the field's name.",
    )
    key_form: Literal["text", "json"] = Field(
        default="text", description="Form of the key: text or json."
    )
    payload_form: Literal["raw", "json_string", "expand"] = Field(
        default="raw",
        description="Form of the value: raw (the column's text or bytes), json_string "
        "(its value as JSON, which of a jsonb is a string) or expand (the JSON that it "
        "holds).",
    )
    schemas: bool = Field(
        default=False,
        description="Write JSON with its schema, as JsonConverter does with "
        "schemas.enable.",
    )
    schema_prefix: str = Field(
        default="",
        description="What names of schemas begin with: Debezium's topic.prefix.",
    )
    nulls: Literal["drop", "keep"] = Field(
        default="drop",
        description="What expand does with members that are null: drop or keep.",
    )
    empty_payload: Literal["keep", "tombstone"] = Field(
        default="keep",
        description="What a payload that is NULL, empty or blank becomes: keep writes "
        "it as any other, tombstone a null value.",
    )
    on_update: Literal["warn", "stop"] = Field(
        default="warn",
        description="What an UPDATE does: warn ignores it with a warning, stop stops "
        "the sink.",
    )
    max_topics: int = Field(
        default=1000,
        ge=1,
        le=100_000,
        description="Most topics that rows may name in a run; one more stops the sink.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if "id" in self.headers:
            message = "headers: the header id is the event's: give it another name"
            raise ValueError(message)
        if "payload" in self.envelope:
            message = "envelope: the field payload is there: give it another name"
            raise ValueError(message)
        if self.payload_form == "raw" and (self.envelope or self.nulls == "keep"):
            message = "payload_form raw has no place for envelope or nulls"
            raise ValueError(message)
        if self.schemas and (self.key_form, self.payload_form) == ("text", "raw"):
            message = "schemas needs key_form json, or another payload_form than raw"
            raise ValueError(message)
        return self


class PackageHandler(_Handler):
    kind: str = Field(description=_KIND)
    options: dict[str, Any] = Field(
        default={}, repr=False, description="Options of the package's handler."
    )


BUILT: Final = {
    "passthrough": PassthroughHandler,
    "drop_columns": DropColumnsHandler,
    "rename_columns": RenameColumnsHandler,
    "mask": MaskHandler,
    "filter": FilterHandler,
    "outbox": OutboxHandler,
}


Handler = Annotated[
    Annotated[PassthroughHandler, Tag("passthrough")]
    | Annotated[DropColumnsHandler, Tag("drop_columns")]
    | Annotated[RenameColumnsHandler, Tag("rename_columns")]
    | Annotated[MaskHandler, Tag("mask")]
    | Annotated[FilterHandler, Tag("filter")]
    | Annotated[OutboxHandler, Tag("outbox")]
    | Annotated[PackageHandler, Tag("package")],
    Discriminator(plugins.tag(plugins.HANDLERS, BUILT)),
]
