"""Who may request a backfill by HTTP, of what, and how often."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support.deadline import wait_until
from tests.unit.service.http.conftest import Change
from walstream.errors import (
    ConfigError,
    HistoryError,
    PermissionLacking,
    Transient,
    WalstreamError,
)
from walstream.service.http import app
from walstream.state import control
from walstream.state.control_message import FindRequest, FoundAnswer

TOKEN = "0123456789abcdef"  # noqa: S105 - of the test
T = {"tables": ["public.t"]}
BEARER = {"authorization": f"Bearer {TOKEN}"}


class Instance:
    """A running instance, as its control socket answers."""

    def __init__(self) -> None:
        self.asked: list[FindRequest] = []
        self.error: WalstreamError | None = None
        self.held = threading.Event()
        self.held.set()

    def ask(self, _folder: Path, request: FindRequest, _wait_s: float) -> FoundAnswer:
        self.asked.append(request)
        self.held.wait(10)
        if self.error is not None:
            raise self.error
        return FoundAnswer(("public.t",), 1, {"public.u": "it has no row key"})


@pytest.fixture
def instance(monkeypatch: pytest.MonkeyPatch) -> Instance:
    made = Instance()
    monkeypatch.setattr(control, "ask", made.ask)
    return made


def client(board: Change, token: str = TOKEN, **headers: str) -> TestClient:
    return TestClient(
        app.make(board({"token": token}), str),
        base_url="http://127.0.0.1",
        headers={**(BEARER if token else {}), **headers},
    )


def test_a_request_is_passed_on_with_the_token(
    board: Change, instance: Instance
) -> None:
    body = {"source": "app", "tables": ["s.*", "public.t"], "where": "id > 5"}
    answer = client(board).post("/backfill", json=body)
    assert answer.status_code == 202
    assert answer.json() == {
        "source": "app",
        "tables": ["public.t"],
        "count": 1,
        "left_out": {"public.u": "it has no row key"},
    }
    assert instance.asked == [FindRequest("app", ("s.*", "public.t"), where="id > 5")]
    client(board).post("/backfill", json={**T, "replace": True})
    assert instance.asked[1:] == [FindRequest("app", ("public.t",), replace=True)]


def test_nobody_asks_without_the_token_or_for_another_site(
    board: Change, instance: Instance
) -> None:
    asked = client(board)
    for wrong in ("", "Bearer wrong"):
        headers = {"authorization": wrong}
        assert asked.post("/backfill", json=T, headers=headers).status_code == 401
    without = client(board, token="").post("/backfill", json=T)
    assert without.status_code == 403
    assert "walstream backfill" in without.json()["error"]
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"origin": "http://evil.example"},
    ):
        assert asked.post("/backfill", json=T, headers=headers).status_code == 403
    for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"):
        assert asked.request(method, "/backfill").status_code == 405
    assert not instance.asked


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not JSON"),
        (b"tables=t", "not JSON"),
        (b"[" * 4000, "not JSON"),
        (rb'{"tables": ["public.\ud800"]}', "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", '"tables" has to be'),
        (b'{"tables": []}', '"tables" has to be'),
        (b'{"tables": "t"}', '"tables" has to be'),
        (b'{"tables": [""]}', '"tables" has to be'),
        (b'{"tables": [1]}', '"tables" has to be'),
        (json.dumps({**T, "replace": 1}).encode(), '"replace" has to be'),
        (json.dumps({**T, "where": ["x"]}).encode(), '"where" has to be'),
        (json.dumps({**T, "where": "f(id)"}).encode(), 'where" calls f(…)'),
        (json.dumps({**T, "source": "other"}).encode(), '"source" has to be'),
        (json.dumps({**T, "source": ["app"]}).encode(), '"source" has to be'),
        (json.dumps({**T, "were": "id > 5"}).encode(), "unknown keys: 'were'"),
        (json.dumps({"tables": ["x" * 4050]}).encode(), "too long"),
    ],
)
def test_a_body_that_says_something_else_is_refused(
    board: Change, instance: Instance, body: bytes, said: str
) -> None:
    answer = client(board).post("/backfill", content=body)
    assert answer.status_code == 400
    assert said in answer.json()["error"]
    assert not instance.asked


def test_large_bodies_and_those_of_other_paths_are_not_read(
    board: Change, instance: Instance
) -> None:
    asked = client(board)
    assert asked.post("/backfill", content=b"x" * 4097).status_code == 413
    assert asked.post("/backfill", content=iter([b"{}"])).status_code == 413
    assert asked.put("/backfill", content=b"{}").status_code == 413
    assert asked.post("/status", content=b"{}").status_code == 413
    assert not instance.asked


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("there is no table"), 400),
        (PermissionLacking("another user's"), 403),
        (Transient("it does not answer"), 503),
        (HistoryError("odd"), 500),
    ],
)
def test_an_error_is_the_control_sockets(
    board: Change, instance: Instance, error: WalstreamError, code: int
) -> None:
    instance.error = error
    answer = client(board).post("/backfill", json=T)
    assert (answer.status_code, answer.json()) == (code, {"error": error.args[0]})


def test_one_is_under_way_at_a_time(board: Change, instance: Instance) -> None:
    instance.held.clear()
    # one event loop for both
    with client(board) as asked, ThreadPoolExecutor(1) as pool:
        first = pool.submit(asked.post, "/backfill", json=T)
        wait_until(lambda: instance.asked, 10, "it is passed on")
        second = asked.post("/backfill", json=T)
        instance.held.set()
        assert first.result(10).status_code == 202
    assert second.status_code == 429
    assert second.headers["retry-after"] == "60"


def test_a_minute_has_room_for_a_few(board: Change, instance: Instance) -> None:
    asked = client(board)
    codes: list[Any] = [asked.post("/backfill", json=T).status_code for _ in range(12)]
    assert codes == [202] * 10 + [429] * 2
    assert len(instance.asked) == 10
