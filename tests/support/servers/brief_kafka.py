"""A Kafka that lives for minutes at most: it compiles little, and is formatted once.

Half of what it would take of a processor is its start; three of them idle all along.
"""

import re
import uuid
from base64 import urlsafe_b64encode
from typing import ClassVar, Final

from walstream.testing.servers import LocalKafka
from walstream.testing.servers.process import Child

_COMPILES_LITTLE: Final = "-XX:TieredStopAtLevel=1"
_IDENTITY: Final = re.compile(rb"^((?:cluster|directory)\.id=).*$", re.MULTILINE)


class BriefKafka(LocalKafka):
    """As `LocalKafka`, of which only the first of this process runs its tool."""

    _formatted: ClassVar[dict[str, bytes]] = {}  # by the file's name

    def _java_child(self, *arguments: str) -> Child:
        return super()._java_child(_COMPILES_LITTLE, *arguments)

    def _format(self) -> None:
        if not self._formatted:
            super()._format()
            made = [path for path in self.data.iterdir() if path.is_file()]
            self._formatted.update((path.name, path.read_bytes()) for path in made)
            return
        self.data.mkdir()
        for name, content in self._formatted.items():
            (self.data / name).write_bytes(_IDENTITY.sub(_renewed, content))


def _renewed(found: re.Match[bytes]) -> bytes:
    """Return an identity that no other broker has, as the tool makes."""
    return found[1] + urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=")
