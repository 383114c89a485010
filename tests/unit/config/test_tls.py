"""Servers off this machine need verified TLS, or the word insecure."""

from pathlib import Path

import pytest

from walstream.config import KafkaSinkConfig, KafkaSource, PostgresSource, SqlSource
from walstream.config.model import Spark
from walstream.config.tls import (
    Confined,
    broker_addresses,
    broker_hosts,
    check_kafka,
    check_postgres,
    check_spark,
    check_sql,
    confined,
)


def postgres(
    dsn: str, environment: dict[str, str] | None = None, *, insecure: bool = False
) -> str:
    source = PostgresSource(kind="postgres", dsn=dsn, sinks=["k"], insecure=insecure)
    return "".join(map(str, check_postgres("app", source, environment or {})))


def sql(
    url: str, environment: dict[str, str] | None = None, *, insecure: bool = False
) -> str:
    written = {"kind": "sql", "url": url, "sinks": ["r"], "insecure": insecure}
    source = SqlSource.model_validate(
        {**written, "tables": {"t": {"primary_key": "id"}}}
    )
    return "".join(map(str, check_sql("old", source, environment or {})))


def kafka(properties: dict[str, str], *, insecure: bool = False) -> str:
    sink = KafkaSinkConfig(kind="kafka", producer=properties, insecure=insecure)
    problems = check_kafka(("sinks", "k", "producer"), sink)
    return "\n".join(map(str, problems))


def spark(
    master: str,
    conf: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
    *,
    insecure: bool = False,
) -> str:
    section = Spark(master=master, conf=conf or {}, insecure=insecure)
    return "\n".join(map(str, check_spark(section, environment or {})))


AUTHENTICATES = {"spark.authenticate": "true"}
ENCRYPTS = {"spark.network.crypto.enabled": "true"}
SPEAKS_SSL = {"spark.ssl.rpc.enabled": "true"}


@pytest.mark.parametrize(
    "master", ["spark://127.0.0.1:7077", "yarn", "k8s://h", "local-cluster[1,1,1]"]
)
def test_a_cluster_is_refused_unless_it_asks_and_encrypts(master: str) -> None:
    shown = spark(master)
    assert shown.startswith("spark.master: leads off this machine")
    assert '"spark.authenticate" = "true"' in shown
    assert '"spark.network.crypto.enabled" = "true" in [spark.conf]' in shown
    assert "insecure = true in [spark]" in shown
    assert "crypto" not in spark(master, SPEAKS_SSL)
    assert '"spark.authenticate"' in spark(master, ENCRYPTS)
    assert '"spark.authenticate"' not in spark(master, AUTHENTICATES)
    assert "crypto" in spark(master, AUTHENTICATES)
    off = {**AUTHENTICATES, "spark.network.crypto.enabled": "false"}
    assert "crypto" in spark(master, off)
    assert spark(master, AUTHENTICATES | ENCRYPTS) == ""
    assert spark(master, AUTHENTICATES | SPEAKS_SSL) == ""
    assert spark(master, insecure=True) == ""


def test_sparks_own_file_counts_and_what_is_configured_wins(tmp_path: Path) -> None:
    environment = {"SPARK_CONF_DIR": str(tmp_path)}
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.authenticate true\nspark.network.crypto.enabled=true\n"
    )
    assert spark("yarn", environment=environment) == ""
    off = {"spark.authenticate": "false"}
    assert "spark.authenticate" in spark("yarn", off, environment)


def test_tasks_on_this_machine_need_nothing() -> None:
    assert spark("local[*,4]") == spark("local") == ""


@pytest.mark.parametrize(
    "dsn",
    [
        "dbname=x",
        "host=localhost",
        "host=127.0.0.1,::1,/run/postgresql",
        "host=db.example.org hostaddr=127.0.0.1",
        "postgresql:///x",
        "postgresql://%2Frun%2Fpostgresql/x",
        "postgresql://[::1]:5433/x?sslmode=disable",
        "host=db sslmode=verify-full",
        "postgresql://u@db/x?sslmode=verify-full&sslrootcert=system",
        "service=x sslmode=verify-full",
    ],
)
def test_this_machine_and_verified_servers_are_trusted(dsn: str) -> None:
    assert postgres(dsn) == ""


@pytest.mark.parametrize(
    "dsn",
    [
        "host=db.example.org",
        "host=localhost,db.example.org",
        "host=localhost hostaddr=10.0.0.1",
        "postgresql://u@10.0.0.1/x",
        "postgresql://u@localhost/x?host=db.example.org",
        "postgresql://u@localhost,db/x",
        "host=db sslmode=disable",
        "host=db sslmode=prefer",
        "host=db sslmode=require",
        "host=db sslmode=verify-ca",
        "host='db' sslmode='VERIFY-FULL'",
        "postgresql://db/x?ssl=true",
        "service=x",
    ],
)
def test_an_unverified_server_is_refused_unless_insecure(dsn: str) -> None:
    shown = postgres(dsn)
    assert shown.startswith("sources.app.dsn: ")
    assert "sslmode=verify-full" in shown
    assert "insecure = true" in shown
    assert postgres(dsn, insecure=True) == ""


def test_verify_ca_is_refused_with_its_reason() -> None:
    shown = postgres("host=db.example.org sslmode=verify-ca")
    assert "db.example.org" in shown
    assert "whose certificate" in shown


def test_libpqs_environment_counts() -> None:
    assert "db" in postgres("dbname=x", {"PGHOST": "db"})
    assert postgres("dbname=x", {"PGHOST": "db", "PGSSLMODE": "verify-full"}) == ""
    assert "service" in postgres("dbname=x", {"PGSERVICE": "s"})


def test_an_engine_elsewhere_is_refused_with_what_its_driver_needs() -> None:
    shown = sql("mysql+pymysql://u:pw@db.example.org/shop")
    assert shown.startswith("sources.old.url: leads to db.example.org, ")
    assert "write ssl_ca=FILE alone, or insecure = true beside it" in shown
    assert "sslmode=verify-full" in sql("postgresql+psycopg://db/x")
    assert "of oracle+oracledb" not in sql("oracle+oracledb://db/x")
    assert "whether oracle+oracledb verifies TLS is not known" in sql(
        "oracle+oracledb://db/x"
    )
    assert "from elsewhere" in sql("postgresql://?service=x")
    for url in ("mysql://db/x", "oracle://db/x", "postgresql://?service=x"):
        assert sql(url, insecure=True) == ""


def test_an_engine_of_this_machine_or_a_verified_one_is_trusted() -> None:
    assert sql("sqlite:////var/x.db") == ""
    assert sql("mysql+pymysql://u@127.0.0.1/x") == ""
    assert sql("mysql+pymysql://u@db/x?ssl_ca=/ca.pem") == ""
    assert sql("postgresql:///x", {"PGHOST": "db"}) != ""
    assert sql("postgresql:///x", {"PGHOST": "db", "PGSSLMODE": "verify-full"}) == ""


@pytest.mark.parametrize(
    "servers", ["localhost:9092", "127.0.0.1:1,[::1]:2", "PLAINTEXT://localhost:9092"]
)
def test_brokers_of_this_machine_are_trusted(servers: str) -> None:
    assert kafka({"bootstrap.servers": servers}) == ""


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ({}, "security.protocol"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "security.protocol"),
        (
            {
                "security.protocol": "ssl",
                "enable.ssl.certificate.verification": "False",
            },
            "enable.ssl.certificate.verification",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "ssl.endpoint.identification.algorithm": "none",
            },
            "ssl.endpoint.identification.algorithm",
        ),
    ],
)
def test_an_unverified_broker_is_refused_unless_insecure(
    properties: dict[str, str], key: str
) -> None:
    servers = {"bootstrap.servers": "localhost:1,b.example.org:9092"}
    shown = kafka({**servers, **properties})
    assert shown.startswith(f'sinks.k.producer."{key}": b.example.org ')
    assert "insecure = true in sinks.k" in shown
    assert "\n" not in shown
    assert kafka({**servers, **properties}, insecure=True) == ""


def test_verified_brokers_are_trusted() -> None:
    assert kafka({"bootstrap.servers": "b:1", "security.protocol": "SASL_SSL"}) == ""


def test_a_kafka_source_is_held_to_the_same() -> None:
    source = KafkaSource(
        kind="kafka", topics=["t"], sinks=["k"], consumer={"bootstrap.servers": "b:1"}
    )
    (problem,) = check_kafka(("sources", "up", "consumer"), source)
    assert str(problem).startswith("sources.up.consumer.")


def test_hosts_are_found_in_every_writing() -> None:
    servers = "A:1, ssl://b:2,[::1]:3,c,::2"
    hosts = list(broker_hosts({"bootstrap.servers": servers}))
    assert hosts == ["a", "b", "::1", "c", "::2"]


def test_brokers_are_confined_where_nothing_encrypts_and_nobody_said_insecure() -> None:
    servers = {"bootstrap.servers": "localhost"}
    source = KafkaSource(kind="kafka", topics=["t"], sinks=["k"], consumer=servers)
    assert confined("up", source) == Confined(
        "sources.up", 'sources.up.consumer."security.protocol"', "plaintext"
    )
    login = {**servers, "security.protocol": "SASL_PLAINTEXT"}
    found = confined("k", KafkaSinkConfig(kind="kafka", producer=login))
    assert found is not None
    assert (found.owner, found.logs_in) == ("sinks.k", True)
    open_sink = KafkaSinkConfig(kind="kafka", producer=login, insecure=True)
    assert confined("k", open_sink) is None
    for protocol in ("ssl", "SASL_SSL"):
        given = {**servers, "security.protocol": protocol}
        assert confined("k", KafkaSinkConfig(kind="kafka", producer=given)) is None


def test_ports_are_found_in_every_writing() -> None:
    servers = "A:1, ssl://b:2,[::1]:3,[::1],c,::2"
    found = [port for _, port in broker_addresses({"bootstrap.servers": servers})]
    assert found == [1, 2, 3, 9092, 9092, 9092]
