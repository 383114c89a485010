"""The connection string is libpq's, of what JDBC's driver is told."""

from tests.support.connector import draft, fates, translated, undecided
from walstream.admin.connector.draft import Fate
from walstream.config import dsn


def test_parameters_are_libpqs() -> None:
    made, _ = translated(
        {
            "database.hostname": "db.example",
            "database.port": "5433",
            "database.user": "it's me",
            "database.sslmode": "verify-full",
            "database.sslrootcert": "/etc/ca.pem",
            "database.tcpKeepAlive": "false",
        }
    )
    assert dsn.parse(made.text("source", "dsn")) == {
        "host": "db.example",
        "port": "5433",
        "user": "it's me",
        "dbname": "shop",
        "sslmode": "verify-full",
        "sslrootcert": "/etc/ca.pem",
        "keepalives": "0",
    }
    assert not undecided(made)


def test_what_libpq_reads_otherwise_is_told() -> None:
    made = draft(database_sslkey="/etc/key.pk8", database_sslfactory="org.X")
    assert undecided(made) == ["database.sslkey", "database.sslfactory"]
    assert "PEM" in fates(made, "database.sslkey")[Fate.TO_DECIDE]


def test_an_empty_value_says_nothing() -> None:
    made = draft(database_sslmode="")
    assert "sslmode" not in made.text("source", "dsn")
    assert fates(made, "database.sslmode") == {Fate.NO_EFFECT: "it is empty"}
