"""Two addresses: all of it with the token, and two probes without."""

from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection

import pytest
from structlog.testing import capture_logs

from tests.support.deadline import wait_until
from tests.unit.service.http.conftest import config, snapshot, told
from walstream.config import Config
from walstream.errors import ConfigError
from walstream.service.http.listeners import Listeners
from walstream.service.http.socket import listen, said
from walstream.testing.servers.port import free_port

TOKEN = "0123456789abcdef"  # noqa: S105 - of the test


@pytest.fixture
def faces() -> Iterator[tuple[Listeners, int, int]]:
    main, probes = free_port(), free_port()
    made = Listeners(configured(main, probes), str)
    made.listen()
    with closing(made):
        made.open()
        made.publish(snapshot(told()))
        wait_until(lambda: asked(main, "/health") == 401, 10, "it answers")
        wait_until(lambda: asked(probes, "/health") == 200, 10, "probes are answered")
        yield made, main, probes


def configured(main: int, probes: int) -> Config:
    where = f"127.0.0.1:{probes}" if probes else ""
    return config(listen=f"127.0.0.1:{main}", probes=where, token=TOKEN)


def asked(port: int, path: str, method: str = "GET", host: str = "") -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path, headers={"host": host} if host else {})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_probes_want_no_token_and_have_nothing_else(
    faces: tuple[Listeners, int, int],
) -> None:
    made, main, probes = faces
    assert asked(probes, "/ready") == 200
    assert asked(probes, "/health", "HEAD") == 200
    assert asked(probes, "/health", host="any.name.of.a.pod") == 200
    for path in ("/", "/status", "/metrics", "/stats", "/debug", "/debug/on"):
        assert asked(probes, path) == 404
        assert asked(probes, path, "POST") == 404
        assert asked(main, path) == 401
    assert asked(probes, "/health", "POST") == 405
    made.publish(snapshot(told(state="starting", resume=None)))
    assert asked(probes, "/ready") == 503
    assert asked(probes, "/health") == 200


def test_what_is_not_ready_is_not_named_to_whoever_asks(
    faces: tuple[Listeners, int, int],
) -> None:
    made, _, probes = faces
    made.publish(snapshot(told(state="starting", resume=None)))
    connection = HTTPConnection("127.0.0.1", probes, timeout=5)
    connection.request("GET", "/ready")
    assert connection.getresponse().read() == b"not ready\n"
    connection.close()


def test_a_reload_moves_and_ends_them(faces: tuple[Listeners, int, int]) -> None:
    made, main, probes = faces
    other = free_port()
    made.follow(configured(main, other))
    made.publish(snapshot(told()))
    wait_until(lambda: asked(other, "/ready") == 200, 10, "the other one answers")
    assert asked(probes, "/ready") == 0
    wait_until(lambda: asked(main, "/ready") == 401, 10, "listen stays")
    made.follow(configured(other, main))  # they change places
    made.publish(snapshot(told()))
    wait_until(lambda: asked(main, "/ready") == 200, 10, "probes")
    wait_until(lambda: asked(other, "/ready") == 401, 10, "listen")
    made.follow(configured(other, 0))
    made.publish(snapshot(told()))
    wait_until(lambda: asked(other, "/ready") == 401, 10, "listen stays")
    assert asked(main, "/ready") == 0
    made.follow(config(listen=""))
    assert not made.any
    assert asked(other, "/ready") == 0


def test_where_one_cannot_be_had_all_stay(faces: tuple[Listeners, int, int]) -> None:
    made, main, probes = faces
    (taken,) = listen("127.0.0.1:0")
    port = int(said(taken).rpartition(":")[2])
    free = free_port()
    with taken, pytest.raises(ConfigError, match=r"http\.probes: .* is not available"):
        made.follow(configured(free, port))
    assert asked(main, "/ready") == 401
    assert asked(probes, "/ready") == 200
    listen(f"127.0.0.1:{free}")[0].close()  # it is not held


@pytest.mark.parametrize("wider", ["0.0.0.0", "localhost"])  # noqa: S104 - for a moment
def test_a_reload_widens_and_narrows_an_address_at_its_port(
    faces: tuple[Listeners, int, int], wider: str
) -> None:
    made, main, probes = faces
    for host in (wider, "127.0.0.1"):
        where = f"127.0.0.1:{probes}"
        made.follow(config(listen=f"{host}:{main}", probes=where, token=TOKEN))
        made.publish(snapshot(told()))
        wait_until(lambda: asked(main, "/ready") == 401, 10, "it answers there")
        wait_until(lambda: asked(probes, "/ready") == 200, 10, "probes are answered")
        assert made.listening() == [f"{host}:{main}", where]


def test_where_a_wider_one_cannot_be_had_all_stay(
    faces: tuple[Listeners, int, int],
) -> None:
    made, main, probes = faces
    (taken,) = listen("127.0.0.1:0")
    wanted = config(listen=f"0.0.0.0:{main}", probes=said(taken), token=TOKEN)
    with taken, pytest.raises(ConfigError, match=r"http\.probes: .* is not available"):
        made.follow(wanted)
    made.publish(snapshot(told()))
    wait_until(lambda: asked(main, "/ready") == 401, 10, "listen stays")
    wait_until(lambda: asked(probes, "/ready") == 200, 10, "probes stay")
    assert made.listening() == [f"127.0.0.1:{main}", f"127.0.0.1:{probes}"]


def test_an_address_that_nobody_wrote_may_be_taken() -> None:
    (taken,) = listen("127.0.0.1:0")
    wanted = config()
    http = wanted.http.model_construct(**{**dict(wanted.http), "listen": said(taken)})
    http.__pydantic_fields_set__.clear()
    made = Listeners(wanted.model_copy(update={"http": http}), str)
    with taken, closing(made), capture_logs() as log:
        made.listen()
        made.open()
    assert not made.any
    assert [one["event"] for one in log] == ["HTTP is off"]
