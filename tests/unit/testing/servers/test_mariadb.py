"""MariaDB's configuration and the question whether it serves: no server is started."""

import socket
import threading

import pytest

from walstream.errors import ConfigError
from walstream.testing.servers.mariadb import create_user, find_binaries, greets, render
from walstream.testing.servers.port import HOST, free_port


def test_settings_are_quoted_for_an_option_file() -> None:
    settings = {"port": "1", "datadir": 'a\\b "c"'}
    assert render(settings) == ('[mariadbd]\nport="1"\ndatadir="a\\\\b \\"c\\""\n')


def test_each_statement_of_the_start_is_one_line() -> None:
    assert create_user("w", "p").splitlines() == [
        "CREATE OR REPLACE USER 'w'@'127.0.0.1' IDENTIFIED BY 'p';",
        "GRANT ALL ON *.* TO 'w'@'127.0.0.1' WITH GRANT OPTION;",
    ]


def test_missing_server_is_refused_with_the_package_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(ConfigError, match="apt-get install mariadb-server"):
        find_binaries()


def test_nobody_who_listens_is_no_greeting() -> None:
    assert not greets(free_port())


def test_listening_alone_is_no_greeting() -> None:
    with socket.create_server((HOST, 0)) as silent:
        assert not greets(silent.getsockname()[1], timeout_s=0.05)


@pytest.mark.parametrize(
    ("greeting", "serves"),
    [
        (bytes.fromhex("59000000 0a 35"), True),
        (bytes.fromhex("59000000"), False),
        (bytes.fromhex("48000000 ff 1004"), False),
    ],
    ids=["log-in offered", "cut short", "refused"],
)
def test_server_greets_once_it_offers_a_log_in(greeting: bytes, serves: bool) -> None:
    with socket.create_server((HOST, 0)) as server:
        thread = threading.Thread(target=_greet_once, args=(server, greeting))
        thread.start()
        assert greets(server.getsockname()[1]) is serves
        thread.join()


def _greet_once(server: socket.socket, greeting: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(greeting)
