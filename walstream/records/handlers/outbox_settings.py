"""Settings of the handler `outbox`; walstream.config.handler explains each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VALUE: Final = "{value}"


@dataclass(frozen=True, slots=True)
class OutboxSettings:
    id: str
    key: str
    route: str
    payload: str
    timestamp: str
    partition: str
    topic: str
    headers: Mapping[str, str]
    envelope: Mapping[str, str]
    key_form: str
    payload_form: str
    schemas: bool
    schema_prefix: str
    nulls: str
    empty_payload: str
    on_update: str

    @property
    def columns(self) -> frozenset[str]:
        """Names of all that it reads."""
        route = {self.route} if VALUE in self.topic else set()
        others = {self.timestamp, self.partition} - {""}
        placed = {*self.headers.values(), *self.envelope.values()}
        return frozenset({self.id, self.key, self.payload} | route | others | placed)
