"""Looks, while a stream goes on, whether ids still mean what they meant.

A registry that is restored, or replaced, beneath a stream gives ids that are in use to
other schemas: readers would read records by those, and nobody would hear of it before
the next start. Ids are read, never schemas registered or looked up: what a registry has
of an id is compared with what it had, so that its spelling does not matter.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from walstream.errors import WalstreamError
from walstream.kafka.registry.client import RegistryClient
from walstream.kafka.registry.errors import SchemaUnregistered
from walstream.telemetry import runtime
from walstream.telemetry.runtime import ThreadEvent

_EVERY_S: Final = 2.0  # between two questions
_ROUND_S: Final = 60.0  # between two of the same id


class IdPatrol:
    """Asks for one id after the other, in a thread of its own."""

    def __init__(
        self,
        client: RegistryClient,
        known: Callable[[], list[int]],
        over: ThreadEvent,
        tell: Callable[[int], None],
    ) -> None:
        """`tell` is called with an id that means something else, or nothing, by now."""
        self._client = client
        self._known = known
        self._over = over
        self._tell = tell
        self._seen: dict[int, bytes] = {}
        self._asked: dict[int, float] = {}

    def run(self) -> None:
        """Go on until it is over."""
        while not self._over.wait(_EVERY_S):
            now = runtime.monotonic()
            known = self._known()
            number = min(known, key=self._asked_at, default=None)
            if number is not None and now - self._asked_at(number) >= _ROUND_S:
                self._asked[number] = now
                self.look(number)

    def _asked_at(self, number: int) -> float:
        """Return when an id was asked for last: of a new one, long ago."""
        return self._asked.get(number, -_ROUND_S)

    def look(self, number: int) -> None:
        """Compare what an id means with what it meant before."""
        before = self._seen.get(number)
        try:
            found = self._client.schema_of(number, anew=True)
        except SchemaUnregistered:
            if before is not None:  # else it was not there when the stream began
                self._tell(number)
            return
        except WalstreamError:
            return  # away: who needs it says so
        text = f"{found.kind}\n{found.text}".encode()
        digest = blake2b(text, digest_size=16).digest()
        if before is not None and before != digest:
            self._tell(number)
        self._seen[number] = digest
