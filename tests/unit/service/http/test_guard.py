"""Who may ask."""

import base64

import pytest
from starlette.testclient import TestClient

from tests.unit.service.http.conftest import Change
from walstream.config.model import Http
from walstream.service.http import app, token_failures
from walstream.service.http.guard import GuardRules

TOKEN = "a-secret-of-the-test"  # noqa: S105 - of the test


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost:8321",
        "[::1]:8321",
        "10.1.2.3",
        "x.localhost",
        "ours.example:80",
        "OURS.example.",
    ],
)
def test_addresses_and_names_of_ours_are_known(host: str) -> None:
    assert GuardRules.of(Http(hosts=["ours.example"])).knows(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "a@127.0.0.1",
        "127.0.0.1:x",
        "[::1",
        "localhost, evil.example",
    ],
)
def test_any_other_is_not(host: str, board: Change) -> None:
    assert not GuardRules.of(Http()).knows(host)
    asked = TestClient(app.make(board(), str), base_url="http://127.0.0.1")
    assert asked.get("/status", headers={"host": host}).status_code == 400


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"any:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer {TOKEN}", 200),
        (basic(TOKEN), 200),
        ("", 401),
        ("Bearer", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        (f"Bearer {TOKEN}x", 401),
        (basic("wrong"), 401),
        ("Basic !", 401),
        (f"Digest {TOKEN}", 401),
    ],
)
def test_the_token_is_wanted_everywhere(
    board: Change, monkeypatch: pytest.MonkeyPatch, authorization: str, code: int
) -> None:
    monkeypatch.setattr(token_failures, "DELAY_S", 0.0)
    made = app.make(board({"token": TOKEN}), str)
    asked = TestClient(made, base_url="http://127.0.0.1")
    for path in ("/", "/health", "/metrics", "/debug/on", "/nothing"):
        method = "POST" if path == "/debug/on" else "GET"
        headers = {"authorization": authorization}
        answer = asked.request(method, path, headers=headers)
        wanted = 404 if (code, path) == (200, "/nothing") else code
        assert answer.status_code == wanted
        assert TOKEN not in answer.text
    assert ("www-authenticate" in answer.headers) == (code == 401)


def test_a_body_is_refused_unread(board: Change) -> None:
    asked = TestClient(app.make(board(), str), base_url="http://127.0.0.1")
    assert asked.post("/debug/on", content=b"x").status_code == 413
    assert asked.post("/debug/on", content=iter([b"x"])).status_code == 413


def test_nobody_keeps_an_answer(board: Change) -> None:
    asked = TestClient(app.make(board(), str), base_url="http://127.0.0.1")
    headers = asked.get("/").headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_wrong_token_is_counted_and_none_is_not(
    board: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_failures, "DELAY_S", 0.0)
    made = board({"token": TOKEN})
    asked = TestClient(app.make(made, str), base_url="http://127.0.0.1")
    for shown in ({}, {"authorization": "Bearer x"}, {"authorization": basic("x")}):
        assert asked.get("/", headers=shown).status_code == 401
    right = {"authorization": f"Bearer {TOKEN}"}
    text = asked.get("/metrics", headers=right).text
    assert "walstream_http_wrong_tokens_total 2.0" in text
    told = TestClient(app.make(board(), str), base_url="http://127.0.0.1")
    assert "wrong_tokens" not in told.get("/metrics").text
