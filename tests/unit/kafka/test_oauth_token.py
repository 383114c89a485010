"""Who makes tokens of SASL/OAUTHBEARER, and what of it reaches a log."""

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from walstream.config.oauth import OAuth, with_oauth
from walstream.errors import ConfigError, Transient
from walstream.kafka import oauth_token
from walstream.kafka.oauth_token import prepared

SOON = float(int(time.time()) + 86_400)  # whenever in a run it is used


def called(**oauth: Any) -> Any:
    """Ask for a token, as librdkafka does."""
    made: Any = prepared(with_oauth({}, OAuth.model_validate(oauth)))
    return made["oauth_cb"]("")


def printing(told: object) -> dict[str, Any]:
    code = f"print({json.dumps(told)!r})"
    return {"provider": "command", "command": [sys.executable, "-c", code]}


def test_without_a_section_properties_stay_as_they_are() -> None:
    given = {"bootstrap.servers": "h:1", "linger.ms": "5"}
    assert prepared(given) == given


def test_a_command_tells_the_token_and_how_long_it_lives() -> None:
    token, until, principal, extensions = called(
        **printing({"token": "t", "expires_in": 60, "extensions": {"pool": 7}})
    )
    assert (token, principal, extensions) == ("t", "", {"pool": "7"})
    assert 0 < until - time.time() <= 60
    assert called(**printing({"token": "t", "expires_at": SOON}))[1] == SOON
    assert called(**printing({"token": "t", "expires_at": str(SOON)}))[1] == SOON


@pytest.mark.parametrize(
    "told",
    [
        {},
        [],
        {"token": 7},
        {"token": ""},
        {"token": "hidden", "expires_in": "soon"},
        {"token": "hidden", "extensions": ["pool"]},
        {"token": "hidden", "expires_at": "2026-11-24T00:00:00Z"},
    ],
)
def test_what_a_command_prints_instead_is_no_token_and_not_shown(told: object) -> None:
    with pytest.raises(Transient, match="it prints no") as raised:
        called(**printing(told))
    assert "hidden" not in str(raised.value)


def test_aws_is_asked_for_a_token_of_the_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Provider:
        @staticmethod
        def generate_auth_token(region: str) -> tuple[str, int]:
            return f"of {region}", int(SOON * 1000) + 500

    signer = SimpleNamespace(MSKAuthTokenProvider=Provider)
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", signer)
    token = called(provider="aws_msk_iam", region="eu-west-1")
    assert token == ("of eu-west-1", SOON + 0.5)


def test_without_the_signer_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(oauth_token, "_AWS", "no_such_module_at_all")
    with pytest.raises(ConfigError) as raised:
        called(provider="aws_msk_iam", region="eu-west-1")
    assert raised.value.hint.startswith("pip install")


def test_an_installed_package_makes_tokens(installed: Path) -> None:
    (installed / "vaulted.py").write_text(
        "def maker(options):\n    return lambda: (options['word'], 4e9)\n"
    )
    metadata = installed / "vaulted-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: vaulted\n")
    (metadata / "entry_points.txt").write_text(
        "[walstream.tokens]\nvault = vaulted:maker\n"
    )
    assert called(provider="package:vault", options={"word": "w"}) == ("w", 4e9)


def test_a_strangers_error_is_told_without_its_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Provider:
        @staticmethod
        def generate_auth_token(_region: str) -> tuple[str, int]:
            raise KeyError("hidden")

    signer = SimpleNamespace(MSKAuthTokenProvider=Provider)
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", signer)
    with pytest.raises(Transient, match="KeyError") as raised:
        called(provider="aws_msk_iam", region="eu-west-1")
    assert "hidden" not in str(raised.value)


def test_the_first_token_is_made_before_the_client_and_each_is_shown_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []

    class Provider:
        @staticmethod
        def generate_auth_token(region: str) -> tuple[str, int]:
            made.append(region)
            return f"token {len(made)}", int(SOON * 1000)

    signer = SimpleNamespace(MSKAuthTokenProvider=Provider)
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", signer)
    oauth = OAuth(provider="aws_msk_iam", region="r")
    properties: Any = prepared(with_oauth({}, oauth))
    assert len(made) == 1
    tokens = [properties["oauth_cb"]("")[0] for _ in range(3)]
    assert tokens == ["token 1", "token 2", "token 3"]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"expires_at": time.time() - 1}, "has expired already"),
        ({"expires_in": 0}, "has expired already"),
        ({"expires_at": float("nan")}, "has expired already"),
        ({"expires_at": time.time() * 1000}, "in seconds since 1970"),
        ({"expires_at": float("inf")}, "in seconds since 1970"),
        ({"extensions": {"logical-cluster": "x"}}, "name of an extension"),
        ({"extensions": {"auth": "x"}}, "name of an extension"),
    ],
)
def test_what_librdkafka_would_refuse_is_told_and_tried_again(
    told: dict[str, Any], why: str
) -> None:
    """It would wait for 10 s, and end with a SystemError or "not set"."""
    with pytest.raises(Transient, match=why):
        prepared(with_oauth({}, OAuth.model_validate(printing({"token": "t", **told}))))


def test_why_there_is_no_next_token_is_told(tmp_path: Path) -> None:
    script = f"import os; os.path.exists({str(tmp_path / 'down')!r}) and exit(9);"
    command = [sys.executable, "-c", script + ' print(\'{"token": "t"}\')']
    oauth = OAuth(provider="command", command=command)
    properties: Any = prepared(with_oauth({}, oauth))
    properties["oauth_cb"]("")
    (tmp_path / "down").touch()
    with capture_logs() as said, pytest.raises(Transient):
        properties["oauth_cb"]("")
    (line,) = said
    assert "ended with code 9" in line["error"]
    assert "the last one stays" in line["event"]
