"""The producer's properties: Kafka's for Java, in librdkafka's words."""

import re
from typing import Final

from walstream.admin.connector.draft import Draft
from walstream.admin.connector.references import References

PREFIX: Final = "producer.override."
_SAME: Final = frozenset(
    {
        *("batch.size", "bootstrap.servers", "client.dns.lookup", "client.id"),
        *("client.rack", "connections.max.idle.ms", "compression.type", "linger.ms"),
        *("metadata.max.age.ms", "reconnect.backoff.max.ms", "reconnect.backoff.ms"),
        *("request.timeout.ms", "retry.backoff.max.ms", "retry.backoff.ms"),
        *("sasl.kerberos.service.name", "sasl.mechanism", "security.protocol"),
        *("socket.connection.setup.timeout.ms", "ssl.key.password"),
    }
)
_RENAMED: Final = {
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.kerberos.kinit.cmd": "sasl.kerberos.kinit.cmd",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
_ALWAYS: Final = (
    "walstream has its own: no record is dropped, and none overtakes another"
)
_INERT: Final = {
    "acks": "walstream waits for all replicas",
    "enable.idempotence": "walstream's producer always is",
    "delivery.timeout.ms": _ALWAYS,
    "retries": _ALWAYS,
    "max.in.flight.requests.per.connection": _ALWAYS,
    "max.block.ms": "walstream waits for Kafka as long as it takes",
    "max.request.size": "a topic's own limit counts, and on_too_large",
    "transactional.id": "walstream uses no transactions",
    "transaction.timeout.ms": "walstream uses no transactions",
    "key.serializer": "the format does it",
    "value.serializer": "the format does it",
    "ssl.truststore.password": "ssl.ca.location needs none",
    "ssl.truststore.type": "see ssl.truststore.location",
    "ssl.keystore.type": "see ssl.keystore.location",
    "ssl.protocol": "OpenSSL chooses it",
    "ssl.enabled.protocols": "OpenSSL chooses it",
}
_OF_JAVA: Final = re.compile(
    r"metric.*|transaction\..*|metadata\.(max\.idle|recovery).*|partitioner\.adaptive\..*"
    r"|partitioner\.availability\..*|enable\.metrics\.push|security\.providers"
    r"|ssl\.(provider|secure\.random\.implementation|(key|trust)manager\.algorithm)"
    r"|sasl\.login\..*|sasl\.kerberos\.(min|ticket).*|socket\.connection\.setup.*max.*"
)
_PARTITIONERS: Final = (
    "",
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
)
_NAME_CHECK: Final = "ssl.endpoint.identification.algorithm"
_LOGIN: Final = re.compile(
    r"\s*[\w.]*\.(Plain|Scram)LoginModule\s+required\b(?P<options>.*?);?\s*", re.DOTALL
)
_OPTION: Final = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+))""")
_LEVEL: Final = re.compile(r"compression\.(gzip|lz4|zstd)\.level")
_UNKNOWN: Final = (
    "no property that walstream knows of Java's and of librdkafka's: look it up, and "
    "write it in [sinks.kafka.producer]"
)
_PEM: Final = (".pem", ".crt", ".cer")
_PKCS12: Final = (".p12", ".pfx", ".pkcs12")


def translate(draft: Draft, references: References, brokers: str = "") -> None:
    """Write the producer's properties; `brokers` are an operator's own."""
    for key in draft.file.entries:
        if key.startswith(PREFIX):
            _property(draft, references, key, key.removeprefix(PREFIX))
    if brokers:
        draft.tables["producer"]["bootstrap.servers"] = brokers
        if draft.has(f"{PREFIX}bootstrap.servers"):
            draft.inert(f"{PREFIX}bootstrap.servers", "--brokers names others")


def _property(draft: Draft, references: References, key: str, name: str) -> None:
    if not draft.get(key) and name != _NAME_CHECK:
        draft.inert(key, "it is empty")
    elif name in _SAME or name in _RENAMED:
        _put(draft, references, key, _RENAMED.get(name, name))
    elif name in _INERT or _OF_JAVA.fullmatch(name):
        draft.inert(key, _INERT.get(name, "of Java's client alone"))
    elif name.startswith(("sasl.", "ssl.")):
        _security(draft, references, key, name)
    elif found := _LEVEL.fullmatch(name):
        if found[1] == draft.get(f"{PREFIX}compression.type"):
            _put(draft, references, key, "compression.level")
        else:
            draft.inert(key, "of another compression.type")
    elif name == "buffer.memory":
        _memory(draft, key)
    elif name in {"partitioner.class", "partitioner.ignore.keys"}:
        _partitioner(draft, key, name)
    else:
        draft.decide(key, _UNKNOWN)


def _security(draft: Draft, references: References, key: str, name: str) -> None:
    mechanism = draft.get(f"{PREFIX}sasl.mechanism").upper()
    if name == _NAME_CHECK:
        draft.put(key, "producer", name, references.written(key) or "none")
    elif name == "sasl.jaas.config":
        _login(draft, references, key)
    elif name in {"ssl.truststore.location", "ssl.keystore.location"}:
        _store(draft, references, key, name)
    elif name == "ssl.keystore.password":
        _put(draft, references, key, name)
    elif name.startswith("sasl.oauthbearer.") and mechanism != "OAUTHBEARER":
        draft.inert(key, "sasl.mechanism is not OAUTHBEARER")
    else:
        draft.decide(key, _UNKNOWN)


def _put(draft: Draft, references: References, key: str, name: str) -> None:
    draft.put(key, "producer", name, references.written(key))


def _memory(draft: Draft, key: str) -> None:
    if not draft.get(key).isdecimal():
        draft.decide(key, "it is not a number")
        return
    kbytes = max(int(draft.get(key)) >> 10, 1)
    draft.put(key, "producer", "queue.buffering.max.kbytes", str(kbytes))


def _partitioner(draft: Draft, key: str, name: str) -> None:
    value = draft.get(key)
    if (name == "partitioner.class" and value in _PARTITIONERS) or (
        name != "partitioner.class" and value.lower() != "true"
    ):
        draft.became(key, 'partitioner = "murmur2_random", as Java has it')
        return
    draft.decide(
        key,
        "another choice of partitions: walstream goes by the key, as Java does without "
        "it, so rows may go to other partitions",
    )


def _login(draft: Draft, references: References, key: str) -> None:
    found = _LOGIN.fullmatch(draft.get(key))
    options = {}
    for name, quoted, single, bare in _OPTION.findall(
        found["options"] if found else ""
    ):
        options[name] = re.sub(r"\\(.)", r"\1", quoted) or single or bare
    if not found or not {"username", "password"} <= options.keys():
        draft.decide(
            key,
            "a login that is neither Plain nor Scram with username and password: "
            "librdkafka's sasl.* properties, or [sinks.kafka.oauth], say it",
        )
        return
    for option in ("username", "password"):
        name = f"sasl.{option}"
        written = references.written(key, text=options[option], part=option)
        draft.put(key, "producer", name, written)


def _store(draft: Draft, references: References, key: str, name: str) -> None:
    """Name a store of keys, which librdkafka reads in PEM, and its own in PKCS 12."""
    store = name.rpartition(".")[0]
    path = draft.get(key).lower()
    kind = draft.get(f"{PREFIX}{store}.type").lower()
    if kind == "pem" or (not kind and path.endswith(_PEM)):
        if store == "ssl.truststore":
            _put(draft, references, key, "ssl.ca.location")
        else:
            _put(draft, references, key, "ssl.certificate.location")
            _put(draft, references, key, "ssl.key.location")
    elif store == "ssl.keystore" and (kind == "pkcs12" or path.endswith(_PKCS12)):
        _put(draft, references, key, name)
    else:
        wanted = "ssl.ca.location" if store == "ssl.truststore" else name
        form = "PEM" if store == "ssl.truststore" else "PKCS 12"
        draft.decide(
            key,
            f"a store of Java's: keytool -importkeystore and openssl make {form} of "
            f'it; write its path as "{wanted}" in [sinks.kafka.producer]',
        )
