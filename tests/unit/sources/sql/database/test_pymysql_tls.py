"""TLS of PyMySQL, without a server: a connection that is not made yet."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.certificate_authority import Authority
from walstream.sources.sql.database import pymysql_tls


def connection(**options: Any) -> Any:
    return pymysql_tls.connect(None, None, (), {"defer_connect": True, **options})


def test_certificates_are_read_once_where_none_is_verified() -> None:
    one, other = connection(), connection()
    assert one.ctx is other.ctx
    assert one.ctx.verify_mode == ssl.CERT_NONE


def test_options_of_tls_are_taken_as_they_are() -> None:
    plain, told = connection(), connection(ssl_verify_cert=True)
    assert told.ctx is not plain.ctx
    assert told.ctx.verify_mode == ssl.CERT_REQUIRED
    assert not connection(ssl_disabled=True).ssl


def test_an_encrypted_key_asks_no_terminal(tmp_path: Path) -> None:
    pair = Authority(tmp_path).sign("reader", password="secret")  # noqa: S106 - a test's
    with pytest.raises(ssl.SSLError):
        connection(ssl={"cert": str(pair.certificate), "key": str(pair.key)})
