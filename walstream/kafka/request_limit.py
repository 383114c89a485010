"""Largest request that brokers take: they cut off a larger one silently.

A broker closes the connection at a request over its socket.request.max.bytes, and the
producer sends it again for ever. So no record may be larger, whatever its topic takes.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from walstream.telemetry import runtime

ASSUMED: Final = 104_857_600  # Kafka's default, and others' who speak its protocol
SETTING: Final = "socket.request.max.bytes"
_AROUND: Final = 1024  # of a request around its one batch, the topic's name included
_EVERY_S: Final = 60.0
_WAIT_S: Final = 3.0
_WIDEN: Final = (
    f"raise {SETTING} on every broker and restart it, or keep such a value out of the "
    "row"
)
_LET_READ: Final = (
    f"raise {SETTING} on every broker; or, if it is higher, grant the producer's user "
    "DESCRIBE_CONFIGS on the cluster: it could not be read, and Kafka's default is "
    "assumed"
)


class RequestLimit:
    """The smallest limit of any broker, as far as they let it be read."""

    def __init__(self, client_id: str = "") -> None:
        self._around = _AROUND + len(client_id.encode())
        self._found: dict[int, int] = {}  # by broker
        self._next = 0.0

    @property
    def record(self) -> int:
        """Return the largest record that a request has room for."""
        return min(self._found.values(), default=ASSUMED) - self._around

    @property
    def advice(self) -> str:
        """Return how to allow a larger one."""
        return _WIDEN if self._found else _LET_READ

    def look(self, admin: AdminClient) -> None:
        """Ask each broker, now and then; without an answer the last limit stays.

        Blocks for some seconds at most, and never raises.
        """
        if runtime.monotonic() < self._next:
            return
        self._next = runtime.monotonic() + _EVERY_S
        try:
            cluster = admin.describe_cluster(request_timeout=_WAIT_S)
            nodes = [node.id for node in cluster.result(_WAIT_S + 1).nodes]
        except (KafkaException, TimeoutError):
            return
        asked = {node: _ask(admin, node) for node in nodes}
        deadline = runtime.monotonic() + _WAIT_S
        for node, answer in asked.items():
            try:
                config = answer.result(max(0.0, deadline - runtime.monotonic()))
            except (KafkaException, TimeoutError):
                continue
            if (limit := of_broker(written(config))) is not None:
                self._found[node] = limit


def _ask(admin: AdminClient, node: int) -> "Future[dict[str, ConfigEntry]]":
    """Ask one broker: a request may name no other."""
    resource = ConfigResource(ResourceType.BROKER, str(node))
    asked = admin.describe_configs([resource], request_timeout=_WAIT_S)
    (answer,) = asked.values()
    return answer


def written(entries: Mapping[str, ConfigEntry]) -> dict[str, str]:
    """Return a configuration by name, without what the broker hides."""
    return {
        name: entry.value for name, entry in entries.items() if entry.value is not None
    }


def of_broker(config: Mapping[str, str]) -> int | None:
    """Find the limit in what a broker said of itself; None: it does not have it."""
    text = config.get(SETTING, "")
    return int(text) if text.isdecimal() else None
