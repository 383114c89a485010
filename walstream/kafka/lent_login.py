"""Login by librdkafka over a connection of walstream, which then owns it alone.

Each way to log in is librdkafka's: PLAIN, SCRAM, OAUTHBEARER, Kerberos. It connects to
a socket of this process, and what it says until it is logged in goes on to the broker.
Its first request after that is not forwarded: it never learns of another broker.
"""

import socket
import struct
from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from walstream.config.librdkafka import ClientProperties
from walstream.errors import LoginRefused, Transient
from walstream.kafka.admin_client import admin_client
from walstream.kafka.connection_errors import LOGIN, outage
from walstream.kafka.metadata import framed, read_frame
from walstream.telemetry import runtime

_HERE: Final = "127.0.0.1"
_OF_LOGIN: Final = frozenset({17, 18, 36})  # SaslHandshake, ApiVersions, …Authenticate
_API_KEY: Final = struct.Struct("!h")
_HEAR_S: Final = 1.0  # what librdkafka says of a login that was refused


def log_in(
    properties: ClientProperties, broker: socket.socket, timeout_s: float
) -> None:
    """Log in over `broker`, a fresh connection; raise why that failed.

    Raises a WalstreamError, or an OSError of the connection.
    """
    heard: dict[int, KafkaError] = {}
    deadline = runtime.monotonic() + timeout_s
    with socket.create_server((_HERE, 0)) as listener:
        admin = _client(properties, listener.getsockname()[1], heard)
        try:
            # any question: a client connects when it has one
            admin.describe_cluster(request_timeout=max(timeout_s, 1.0))
            listener.settimeout(timeout_s)
            client, _ = listener.accept()
            with client:
                for end in (client, broker):
                    end.settimeout(max(deadline - runtime.monotonic(), 0.1))
                if _passed_on(client, broker):
                    return
            _listen(admin, heard)
        finally:
            # while nobody else can take the port: it would connect again
            del admin
    refused = next((heard[code] for code in LOGIN if code in heard), None)
    if refused is not None:
        found = outage(refused)  # without the address, which is of this process
        raise LoginRefused(
            f"logging in to Kafka: {found.why}",
            hint=f"{found.hint}; then: walstream run",
        )
    raise Transient(
        "Kafka closed the connection at the login",
        hint="check that security.protocol is that of the broker's listener, and read "
        "the broker's log",
    )


def _client(
    properties: ClientProperties, port: int, heard: dict[int, KafkaError]
) -> AdminClient:
    return admin_client(
        {
            **properties,
            "bootstrap.servers": f"{_HERE}:{port}",
            "broker.address.family": "v4",
        },
        lambda error: heard.update({error.code(): error}),
        whose="properties of the Kafka client",
    )


def _passed_on(client: socket.socket, broker: socket.socket) -> bool:
    """Pass the login on, to and fro; tell whether it went well."""
    while (request := read_frame(client)) is not None:
        (key,) = _API_KEY.unpack_from(request)
        if key not in _OF_LOGIN:
            return True
        broker.sendall(framed(request))
        answer = read_frame(broker)
        if answer is None:
            return False
        client.sendall(framed(answer))
    return False


def _listen(admin: AdminClient, heard: Mapping[int, KafkaError]) -> None:
    deadline = runtime.monotonic() + _HEAR_S
    while not any(code in heard for code in LOGIN) and runtime.monotonic() < deadline:
        admin.poll(0.05)
