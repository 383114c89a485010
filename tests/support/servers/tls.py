"""Servers that speak TLS alone, or beside: PostgreSQL, Kafka and MariaDB.

Each certificate of theirs is of one authority. Kafka has a listener for each way to
log in, and for each certificate that does not hold; PLAINTEXT is the tests' own.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from psycopg.conninfo import make_conninfo

from tests.support.fixtures.mariadb import Mariadb
from tests.support.fixtures.postgres import Database, local_postgres
from tests.support.servers.brief_kafka import BriefKafka
from tests.support.servers.certificate_authority import HERE, Authority, Pair
from walstream.testing.servers import LocalMariadb
from walstream.testing.servers.port import HOST, free_port

PASSWORD: Final = "oNe-PaSsWoRd"  # noqa: S105 - of servers that end with the tests
KEY_PASSWORD: Final = "kEy-PaSsWoRd"  # noqa: S105 - likewise
ELSEWHERE: Final = "db.example.com"
_MODULES: Final = "org.apache.kafka.common.security"
_PLAIN: Final = f"{_MODULES}.plain.PlainLoginModule required"
_SCRAM: Final = f"{_MODULES}.scram.ScramLoginModule required;"
_RULES: Final = f"""\
hostssl all app {HOST}/32 scram-sha-256
hostssl all bearer {HOST}/32 cert
hostnossl all app,bearer {HOST}/32 reject
"""


class SecurePostgres:
    """PostgreSQL 15: the role `app` has a password, `bearer` a certificate."""

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self.good = authority.sign("postgres", *HERE)
        self.server = local_postgres(15)

    @property
    def database(self) -> Database:
        """Of the superuser, without TLS: the tests' own."""
        return Database(self.server)

    def begin(self) -> None:
        """Switch TLS on in the server that runs."""
        data = self.server.data
        rules = data / "pg_hba.conf"
        # without `replication` lines: walstream needs none
        kept = [
            line for line in rules.read_text().splitlines() if "replication" not in line
        ]
        rules.write_text(_RULES + "\n".join(kept) + "\n")
        _place(self.authority.path, data / "ca.crt", data)
        self._show(self.good)
        home = self.database
        for statement in (
            "ALTER SYSTEM SET ssl_cert_file = 'shown.crt'",
            "ALTER SYSTEM SET ssl_key_file = 'shown.key'",
            "ALTER SYSTEM SET ssl_ca_file = 'ca.crt'",
            "ALTER SYSTEM SET ssl = on",
            f"CREATE ROLE app SUPERUSER LOGIN PASSWORD '{PASSWORD}'",
            "CREATE ROLE bearer SUPERUSER LOGIN",
            "SELECT pg_reload_conf()",
        ):
            home.execute(statement)

    def _show(self, pair: Pair) -> None:
        data = self.server.data
        _place(pair.key, data / "shown.key", data)
        _place(pair.certificate, data / "shown.crt", data)

    def show(self, pair: Pair) -> None:
        """Show another certificate from now on."""
        self._show(pair)
        self.database.execute("SELECT pg_reload_conf()")

    @contextmanager
    def showing(self, pair: Pair) -> Iterator[None]:
        """Show another certificate for a while."""
        self.show(pair)
        try:
            yield
        finally:
            self.show(self.good)

    def cut(self) -> None:
        """End the sessions that came by TLS: those that follow shake hands anew."""
        gone = self.database.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE usename IN ('app', 'bearer')"
        )
        assert gone

    def dsn(self, database: str, **more: str) -> str:
        """Of `app`, unless more is said; the server is verified."""
        given = {"user": "app", "password": PASSWORD, "host": HOST, **more}
        plain = self.server.dsn(database)
        authority = {"sslmode": "verify-full", "sslrootcert": str(self.authority.path)}
        return make_conninfo(plain, **{**authority, **given})


class SecureKafka(BriefKafka):
    """Has listeners beside PLAINTEXT, which `at` finds by their names."""

    def __init__(self, authority: Authority, stranger: Authority) -> None:
        super().__init__()
        self.authority = authority
        shown = {
            "LOGIN": authority.sign("kafka", *HERE),
            "MUTUAL": authority.sign("kafka", *HERE),
            "EXPIRED": authority.sign("kafka", *HERE, expired=True),
            "ELSEWHERE": authority.sign("kafka", ELSEWHERE),
            "STRANGE": stranger.sign("kafka", *HERE),
        }
        self._ports_of = dict.fromkeys(shown, 0)
        logins = dict.fromkeys(shown, "SASL_SSL") | {"MUTUAL": "SSL"}
        spoken = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **logins}
        self.settings |= {
            "listener.security.protocol.map": _pairs(spoken),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.mutual.ssl.client.auth": "required",
            # who stays is asked again, too: who is idle is cut
            "connections.max.idle.ms": "2000",
        }
        for name, pair in shown.items():
            of = f"listener.name.{name.lower()}."
            login = f'{_PLAIN} user_app="{PASSWORD}";'
            keys = self.folder / f"{name}.pem"
            keys.write_text(pair.both, "ascii")
            self.settings |= {
                f"{of}ssl.keystore.type": "PEM",
                f"{of}ssl.keystore.location": str(keys),
                f"{of}ssl.truststore.type": "PEM",
                f"{of}ssl.truststore.location": str(authority.path),
                f"{of}plain.sasl.jaas.config": login,
                f"{of}scram-sha-256.sasl.jaas.config": _SCRAM,
            }

    def _choose_ports(self) -> None:
        super()._choose_ports()
        self._ports_of = {name: free_port() for name in self._ports_of}
        ports = {"PLAINTEXT": self.port, **self._ports_of}
        told = [f"{name}://{HOST}:{port}" for name, port in ports.items()]
        controller = f"CONTROLLER://{HOST}:{self._ports[1]}"
        self.settings |= {
            "listeners": ",".join([*told, controller]),
            "advertised.listeners": ",".join(told),
        }

    def at(self, listener: str) -> dict[str, Any]:
        """Give what leads a client to a listener, and has it verify the broker."""
        protocol = "ssl" if listener == "MUTUAL" else "sasl_ssl"
        return {
            "bootstrap.servers": f"{HOST}:{self._ports_of[listener]}",
            "security.protocol": protocol,
            "ssl.ca.location": str(self.authority.path),
        }

    def login(
        self,
        mechanism: str = "SCRAM-SHA-256",
        listener: str = "LOGIN",
        password: str = PASSWORD,
    ) -> dict[str, Any]:
        """Give the properties of one who has a password."""
        return {
            **self.at(listener),
            "sasl.mechanism": mechanism,
            "sasl.username": "app",
            "sasl.password": password,
        }

    def bearing(self, pair: Pair, password: str = "") -> dict[str, Any]:
        """Give the properties of one who has a certificate."""
        secret = {"ssl.key.password": password} if password else {}
        return {
            **self.at("MUTUAL"),
            "ssl.certificate.location": str(pair.certificate),
            "ssl.key.location": str(pair.key),
            **secret,
        }

    def alter(self, password: str) -> None:
        """Have `app` need this password, by SCRAM."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        wanted = UserScramCredentialUpsertion("app", info, password.encode())
        admin.alter_user_scram_credentials([wanted])["app"].result(30)


class SecureMariadb:
    """MariaDB, in which the user `reader` comes by TLS alone."""

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self.good = authority.sign("mariadb", *HERE)
        self.server = LocalMariadb()
        folder = self.server.folder
        self.server.settings |= {
            "ssl-ca": str(folder / "ca.crt"),
            "ssl-cert": str(folder / "shown.crt"),
            "ssl-key": str(folder / "shown.key"),
        }
        _place(authority.path, folder / "ca.crt", folder)
        self._show(self.good)

    @property
    def database(self) -> Mariadb:
        return Mariadb(self.server, "shop")

    def begin(self) -> None:
        """Make what is read, in the server that runs."""
        home = Mariadb(self.server)
        for statement in (
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id bigint PRIMARY KEY)",
            f"CREATE USER reader@'{HOST}' IDENTIFIED BY '{PASSWORD}' REQUIRE SSL",
            f"CREATE USER bearer@'{HOST}' REQUIRE X509",
            f"GRANT ALL ON shop.* TO reader@'{HOST}', bearer@'{HOST}'",
        ):
            home.execute(statement)

    def _show(self, pair: Pair) -> None:
        folder = self.server.folder
        _place(pair.key, folder / "shown.key", folder)
        _place(pair.certificate, folder / "shown.crt", folder)

    def show(self, pair: Pair) -> None:
        """Show another certificate from now on."""
        self._show(pair)
        Mariadb(self.server).execute("FLUSH SSL")

    @contextmanager
    def showing(self, pair: Pair) -> Iterator[None]:
        """Show another certificate for a while."""
        self.show(pair)
        try:
            yield
        finally:
            self.show(self.good)

    def url(
        self,
        user: str = "reader",
        password: str = PASSWORD,
        authority: Path | None = None,
        **more: object,
    ) -> str:
        """Of a user who verifies the server."""
        found = (
            f"{HOST}:{self.server.port}/shop?ssl_ca={authority or self.authority.path}"
        )
        found += "".join(f"&{key}={value}" for key, value in more.items())
        return f"mysql+pymysql://{user}:{password}@{found}"


def _place(file: Path, where: Path, like: Path) -> None:
    """Copy a file to where a server reads it, whose user is that of a folder."""
    fresh = where.with_suffix(".new")
    shutil.copyfile(file, fresh)
    fresh.chmod(0o600)
    owner = like.stat()
    os.chown(fresh, owner.st_uid, owner.st_gid)
    fresh.rename(where)


def _pairs(spoken: dict[str, str]) -> str:
    return ",".join(f"{name}:{protocol}" for name, protocol in spoken.items())
