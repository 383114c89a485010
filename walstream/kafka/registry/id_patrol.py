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

    def run(self) -> None:
        """Go on until it is over."""
        due_at = 0.0
        while not self._over.wait(max(0.0, due_at - runtime.monotonic())):
            due_at = runtime.monotonic() + _ROUND_S
            for number in self._known():
                if self._over.wait(_EVERY_S):
                    return
                self.look(number)

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
