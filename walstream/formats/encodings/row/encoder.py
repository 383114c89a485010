"""Encoder of the rows of one query, behind the ids of their schemas."""

from collections.abc import Sequence
from typing import Any, Final

from walstream.errors import ConfigError
from walstream.formats.encodings.languages import language_of
from walstream.formats.encodings.row.forms import ColumnForm
from walstream.formats.encodings.row.schema import RowSpec, row_schemas
from walstream.formats.encodings.subject import FramedPart, Strategy, framed_parts
from walstream.formats.plain import plain
from walstream.formats.row import compact

_SIGN: Final = 63  # the bit of a long
_ELSEWHERE: Final = object()  # a value that its type does not hold

Column = Sequence[Any]


class RegisteredRows:
    """Writes rows and their keys, once the schemas' ids are set."""

    def __init__(self, encoding: str, spec: RowSpec, table: str) -> None:
        """`table` is its name in the records.

        Raises ConfigError for names that the encoding does not take.
        """
        self._spec = spec
        self._table = table
        self._language = language_of(encoding)
        made = row_schemas(spec)
        self._fields, self._forms, self._required = (
            made.fields,
            made.forms,
            made.required,
        )
        try:
            self._value = self._language.document(made.value)
            self._key = self._language.document(made.key)
        except ConfigError as error:
            raise ConfigError(
                f"table {table}: {error.args[0]}",
                hint="name the columns to read in fields, without one of them",
            ) from None
        self._key_field = made.fields[spec.key]

    def parts(self, subjects: Strategy, topic: str) -> tuple[FramedPart, ...]:
        """Return the parts of records whose schemas have an id."""
        writers = [(True, self._key), (False, self._value)]
        return framed_parts(subjects, self._language.kind, topic, writers)

    def key(self, key: int) -> bytes:
        """Write a record's key; raise ConfigError where its type has no room for it."""
        if key >> _SIGN in {0, -1}:  # any of 64 bits
            return self._key.write_value({self._key_field: key})
        raise ConfigError(
            f"table {self._table}: the key {self._key_field} has the value {key}, "
            "for which its schema has no room",
            hint="delete or correct such rows, or leave the encoding out",
        )

    def encode(
        self, rows: Sequence[Sequence[object]], hashes: Sequence[str], at: float
    ) -> list[bytes]:
        """Write rows, whose values may be of any type; `at` is the Unix time."""
        if not rows:
            return []
        columns = [
            self._column(form, needed, values)
            for form, needed, values in zip(
                self._forms, self._required, zip(*rows, strict=True), strict=True
            )
        ]
        return [
            self._write(data, row, digest, at)
            for data, row, digest in zip(
                zip(*columns, strict=True), rows, hashes, strict=True
            )
        ]

    @staticmethod
    def _column(form: ColumnForm, needed: bool, values: Column) -> list[Any]:  # noqa: FBT001 - its own
        """Make a column's values of a driver's."""
        fit = form.fit
        null = _ELSEWHERE if needed else None
        try:
            return [null if one is None else fit(one) for one in values]
        except ValueError:
            pass
        found: list[Any] = []
        for one in values:
            try:
                found.append(null if one is None else fit(one))
            except ValueError:
                found.append(_ELSEWHERE)
        return found

    def _write(
        self, data: Sequence[Any], row: Sequence[object], digest: str, at: float
    ) -> bytes:
        document = self._document(data, row, digest, at)
        try:
            return self._value.write_value(document)
        except (UnicodeEncodeError, TypeError):  # half a surrogate pair: no UTF-8
            checked = [_checked(one) for one in data]
            return self._value.write_value(self._document(checked, row, digest, at))

    def _document(
        self, data: Sequence[Any], row: Sequence[object], digest: str, at: float
    ) -> dict[str, Any]:
        texts: dict[str, str] | None = None
        if _ELSEWHERE in data:
            texts, data = self._elsewhere(data, row)
        return {
            "timestamp": at,
            "name": self._spec.source,
            "table": self._table,
            "data": dict(zip(self._fields, data, strict=True)),
            "hash": digest,
            "texts": texts,
        }

    def _elsewhere(
        self, data: Sequence[Any], row: Sequence[object]
    ) -> tuple[dict[str, str], list[Any]]:
        """Return the values that stand beside the row, and the row without them."""
        texts: dict[str, str] = {}
        found = list(data)
        for place, one in enumerate(data):
            if one is not _ELSEWHERE:
                continue
            value, form = row[place], self._forms[place]
            texts[self._spec.columns[place].name] = compact(plain(value))
            stands = self._required[place] or form.text
            found[place] = form.instead(value) if stands else None
        return texts, found


def _checked(value: Any) -> Any:
    """Return a value, if UTF-8 has it."""
    try:
        _encode(value)
    except UnicodeEncodeError:
        return _ELSEWHERE
    return value


def _encode(value: Any) -> None:
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, list):
        for one in value:
            _encode(one)
