"""Documents of a state folder: each has a name and a dataclass for its contents.

Whoever owns a document has its `StateDocument` beside the dataclass, and everybody
reads and writes it by that. docs/architecture.md lists them all.
"""

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from walstream.errors import WalstreamError
from walstream.telemetry.json_codec import plain, read

T = TypeVar("T")

Entries = Mapping[str, object]
"""What `StateStore.write` takes: JSON values by the documents' names; None deletes."""


class StoredDocuments(Protocol):
    """Documents by name, as they are stored."""

    def read(self, name: str) -> object | None:
        """Return a document; raise StateDamaged when it is not what was written."""

    def names(self, prefix: str) -> list[str]:
        """Return the names that begin with `prefix`, in order."""

    def tree(self, name: str) -> Entries:
        """Return a document and all below it (`name/…`), as of one moment."""

    def damaged(self, what: str) -> WalstreamError:
        """Return the error of a document that is not as it was written."""


class StateDocument(Generic[T]):
    """Name of a document, and the type of its content: what JSON can hold.

    A content of an older walstream lacks fields, which then have their defaults.
    """

    def __init__(self, name: str, kind: type[T]) -> None:
        self.name = name
        self.kind = kind

    def read(self, stored: StoredDocuments) -> T | None:
        """Return its content, None where there is none; raise StateDamaged."""
        return self.decode(stored, stored.read(self.name))

    def decode(self, stored: StoredDocuments, found: object | None) -> T | None:
        """Return the content of a value that `stored` gave; raise StateDamaged."""
        if found is None:
            return None
        try:
            return read(self.kind, found)
        except ValueError as error:
            raise stored.damaged(
                f"the document {self.name!r} does not fit: {error}"
            ) from error

    def entry(self, content: T | None) -> dict[str, object]:
        """Return what writes it, or with None deletes it."""
        return {self.name: plain(content)}


class StateDocuments(Generic[T]):
    """Documents of one type, each of a thing whose name follows the prefix."""

    def __init__(self, prefix: str, kind: type[T]) -> None:
        """`prefix` ends with a slash."""
        self.prefix = prefix
        self.kind = kind

    def of(self, key: str) -> StateDocument[T]:
        """Return the document of one thing."""
        return StateDocument(self.prefix + key, self.kind)

    def keys(self, stored: StoredDocuments) -> list[str]:
        """Return the names of the things that have one, in order."""
        return [self.key_of(name) for name in stored.names(self.prefix)]

    def key_of(self, name: str) -> str:
        """Return the name of the thing that a document is of."""
        return name.removeprefix(self.prefix)

    def read_all(self, stored: StoredDocuments) -> dict[str, T]:
        """Return all, as of one moment, by the names of their things."""
        return self.decode_all(stored, stored.tree(self.prefix[:-1]))

    def decode_all(self, stored: StoredDocuments, documents: Entries) -> dict[str, T]:
        """Return those of a `tree` that `stored` gave, by the names of their things."""
        found = {}
        for name, document in documents.items():
            if name.startswith(self.prefix):
                content = self.of(self.key_of(name)).decode(stored, document)
                if content is not None:
                    found[self.key_of(name)] = content
        return found
