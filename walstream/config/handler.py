"""The handlers of a sink, kind by kind, with their defaults."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from walstream import plugins
from walstream.config.field import DistinctNames, Names, Section, TablePattern

_SHORTEST_SECRET: Final = 16
_KIND: Final = (
    "Kind of the handler: passthrough, drop_columns, rename_columns, mask, filter, or "
    "one that an installed package adds."
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
}


Handler = Annotated[
    Annotated[PassthroughHandler, Tag("passthrough")]
    | Annotated[DropColumnsHandler, Tag("drop_columns")]
    | Annotated[RenameColumnsHandler, Tag("rename_columns")]
    | Annotated[MaskHandler, Tag("mask")]
    | Annotated[FilterHandler, Tag("filter")]
    | Annotated[PackageHandler, Tag("package")],
    Discriminator(plugins.tag(plugins.HANDLERS, BUILT)),
]
