"""A server off this machine is talked to over verified TLS, or `insecure` says so.

Encryption without verification is none against who stands in between, so libpq's
`require` and `verify-ca` are refused like no TLS at all, and so is a librdkafka that
does not compare the broker's name. Spark has its own ways, a shared secret among them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from walstream.config import dsn, engine_url
from walstream.config.model import Spark
from walstream.config.problem import Path, Problem, show_path
from walstream.config.sink import KafkaSinkConfig
from walstream.config.source import KafkaSource, PostgresSource, SqlSource
from walstream.config.spark import LOCAL, spark_defaults

FALSE_WORDS: Final = frozenset({"false", "f", "0"})  # as librdkafka reads them

_SPARK_ENCRYPTS: Final = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")

_ENCRYPTED: Final = frozenset({"ssl", "sasl_ssl"})
_KAFKA_PORT: Final = 9092

_MODE_FLAWS: Final = {
    "verify-ca": "does not check whose certificate it is: any certificate of that "
    "authority passes",
    "require": "checks no certificate: an attacker in between can show any",
    "prefer": "continues without TLS if the server has none",
    "allow": "continues without TLS if the server allows it",
    "disable": "uses no TLS",
}


@dataclass(frozen=True, slots=True)
class Confined:
    """Whose brokers have to be on this machine: nothing encrypts what they are told."""

    owner: str  # sinks.NAME
    key: str  # of the configuration, that would encrypt
    protocol: str

    @property
    def logs_in(self) -> bool:
        return self.protocol.startswith("sasl_")


def check_postgres(
    name: str, source: PostgresSource, environment: Mapping[str, str]
) -> Iterator[Problem]:
    """Refuse a DSN that leads where nothing proves the server."""
    path = ("sources", name, "dsn")
    parameters = dsn.parse(source.dsn)
    mode = parameters.get("sslmode") or environment.get("PGSSLMODE", "")
    if source.insecure or mode == "verify-full":
        return
    servers = dsn.servers(parameters, environment)
    if servers is None:
        what = "takes its server from a service file, which is not read here"
    else:
        remote = [host for host, _ in servers if not dsn.is_local(host)]
        if not remote:
            return
        what = f"leads to {', '.join(remote)}, which is not this machine"
    flaw = "sslmode is not set"
    if mode:
        flaw = f"sslmode={mode} {_MODE_FLAWS.get(mode, 'is not one of libpq')}"
    yield Problem(
        path,
        f"{what}, and {flaw}: write sslmode=verify-full (with sslrootcert=FILE, or "
        f"sslrootcert=system for a public authority), or insecure = true beside it",
    )


def check_sql(
    name: str, source: SqlSource, environment: Mapping[str, str]
) -> Iterator[Problem]:
    """Refuse a URL that leads where nothing proves the server."""
    server = engine_url.parse(source.url)
    remote = engine_url.remote_hosts(server, environment)
    if source.insecure or remote == [] or engine_url.verifies(server, environment):
        return
    what = "takes its server from elsewhere, which is not read here"
    if remote:
        what = f"leads to {', '.join(remote)}, which is not this machine"
    scheme = f"{server.dialect}{server.driver and '+'}{server.driver}"
    flaw = f"whether {scheme} verifies TLS is not known: write insecure = true"
    if advice := engine_url.advice(server):
        flaw = f"verified TLS is not asked for: write {advice}, or insecure = true"
    yield Problem(("sources", name, "url"), f"{what}, and {flaw} beside it")


def check_kafka(path: Path, client: KafkaSinkConfig | KafkaSource) -> Iterator[Problem]:
    """Refuse properties that leave a broker off this machine unverified."""
    properties = (
        client.producer if isinstance(client, KafkaSinkConfig) else client.consumer
    )
    remote = [host for host in broker_hosts(properties) if not dsn.is_local(host)]
    if client.insecure or not remote:
        return
    what = f"{', '.join(remote)} is not this machine"
    owner = show_path(path[:2])
    protocol = _protocol(properties)
    if protocol not in _ENCRYPTED:
        yield Problem(
            (*path, "security.protocol"),
            f'{what}, and {protocol} is not encrypted: write "ssl" or "sasl_ssl", '
            f"or insecure = true in {owner}",
        )
    for key, bad, right in (
        ("enable.ssl.certificate.verification", FALSE_WORDS, "true"),
        ("ssl.endpoint.identification.algorithm", {"none"}, '"https"'),
    ):
        if properties.get(key, "").lower() in bad:
            yield Problem(
                (*path, key),
                f"{what}, and its certificate is not verified so: write {right}, "
                f"or insecure = true in {owner}",
            )


def confined(name: str, client: KafkaSinkConfig | KafkaSource) -> Confined | None:
    """Return whether brokers that a server names have to be on this machine."""
    path: Path = ("sinks", name, "producer")
    properties = client.consumer if isinstance(client, KafkaSource) else client.producer
    if isinstance(client, KafkaSource):
        path = ("sources", name, "consumer")
    protocol = _protocol(properties)
    if client.insecure or protocol in _ENCRYPTED:
        return None
    key = show_path((*path, "security.protocol"))
    return Confined(show_path(path[:2]), key, protocol)


def _protocol(properties: Mapping[str, str]) -> str:
    return properties.get("security.protocol", "plaintext").lower()


def check_spark(spark: Spark, environment: Mapping[str, str]) -> Iterator[Problem]:
    """Refuse a cluster that anybody may speak to, or overhear.

    Tasks carry connection strings and producer properties, and whoever sends one has
    it run. SSL alone encrypts, and lets everybody in.
    """
    if spark.insecure or LOCAL.fullmatch(spark.master):
        return
    given = {**spark_defaults(environment), **spark.conf}
    lacking = []
    if not _is_on(given, "spark.authenticate"):
        lacking.append("spark.authenticate")
    if not any(_is_on(given, key) for key in _SPARK_ENCRYPTS):
        lacking.append(_SPARK_ENCRYPTS[0])
    if lacking:
        wanted = " and ".join(f'"{key}" = "true"' for key in lacking)
        yield Problem(
            ("spark", "master"),
            "leads off this machine, where tasks carry passwords and rows, and anyone "
            f"who can submit a task can run code: write {wanted} in [spark.conf] "
            "(Spark's documentation, Security, says what the cluster needs), or "
            "insecure = true in [spark]",
        )


def _is_on(properties: Mapping[str, str], key: str) -> bool:
    return properties.get(key, "").strip().lower() == "true"


def brokers(properties: Mapping[str, str]) -> frozenset[str]:
    """Return the bootstrap servers, to compare."""
    return frozenset(_servers(properties))


def broker_hosts(properties: Mapping[str, str]) -> Iterable[str]:
    """Hosts of the bootstrap servers: the port may be missing, the host bracketed."""
    return (host for host, _ in broker_addresses(properties))


def broker_addresses(properties: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Hosts and ports of the bootstrap servers."""
    for server in _servers(properties):
        if server.startswith("["):
            host, _, port = server[1:].partition("]")
        elif server.count(":") == 1:
            host, _, port = server.partition(":")
        else:
            host, port = server, ""
        number = port.lstrip(":")
        yield host, int(number) if number.isdecimal() else _KAFKA_PORT


def _servers(properties: Mapping[str, Any]) -> Iterator[str]:
    for written in properties.get("bootstrap.servers", "").split(","):
        server = written.strip().lower().rpartition("://")[2]
        if server:
            yield server
