"""An encrypted key whose password is missing is refused: no terminal is asked for it.

OpenSSL would write "Enter PEM pass phrase:" there, and wait for ever.
"""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.programs.terminal import run_on_terminal
from tests.support.servers.certificate_authority import Authority, Pair
from tests.support.servers.tls import KEY_PASSWORD

_SSL_REQUEST = struct.pack("!II", 8, 80877103)
_TRY = """
from walstream.errors import WalstreamError
try:
    go(*sys.argv[1:])
except WalstreamError as error:
    print(type(error).__name__, error)
"""
_POSTGRES = "from walstream.postgres.connection import connect as go\n" + _TRY
_SQL = """\
from walstream.sources.sql.database.engine import Database
def go(url):
    with Database(url).session():
        pass
"""
_KAFKA = """\
from walstream.kafka.ordered_producer import OrderedProducer
def go(certificate, key):
    files = {"ssl.certificate.location": certificate, "ssl.key.location": key}
    OrderedProducer("k", {"security.protocol": "ssl", "log_level": 0, **files})
"""


@pytest.fixture
def encrypted(tmp_path: Path) -> Pair:
    return Authority(tmp_path).sign("bearer", password=KEY_PASSWORD)


@pytest.fixture
def tls_port() -> Iterator[int]:
    """Take connections as a PostgreSQL that speaks TLS does, and no further."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    one, _ = listener.accept()
                    with one:
                        if one.recv(8) == _SSL_REQUEST:
                            one.sendall(b"S")
                            one.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def test_postgres(encrypted: Pair, tls_port: int) -> None:
    dsn = (
        f"host=127.0.0.1 port={tls_port} user=u sslmode=require"
        f" sslcert={encrypted.certificate} sslkey={encrypted.key}"
    )
    ended = run_on_terminal(_POSTGRES, dsn)
    assert ended.code == 0, ended
    assert ended.text.startswith("CertificateRefused ")
    assert "could not load private key file" in ended.text
    assert ended.shown == ""


def test_a_sql_source(encrypted: Pair, tls_port: int) -> None:
    url = (
        f"postgresql+psycopg://u@127.0.0.1:{tls_port}/d?sslmode=require"
        f"&sslcert={encrypted.certificate}&sslkey={encrypted.key}"
    )
    ended = run_on_terminal(_SQL + _TRY, url)
    assert ended.code == 0, ended
    assert ended.text.startswith("CertificateRefused ")
    assert "could not load private key file" in ended.text
    assert ended.shown == ""


def test_kafka(encrypted: Pair) -> None:
    ended = run_on_terminal(_KAFKA + _TRY, encrypted.certificate, encrypted.key)
    assert ended.code == 0, ended
    assert ended.text.startswith("ConfigError sinks.k.producer")
    assert "ssl.key.password" in ended.text
    assert ended.shown == ""
