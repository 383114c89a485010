"""Tokens for SASL/OAUTHBEARER: who makes them, and how each client gets them.

librdkafka asks for one when a client begins, and again when 80 % of its life is over.
What to do then is written in the client's properties, which reach every producer,
admin client, reader and Spark task: `prepared` makes the callback of it.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final

import structlog

from walstream import plugins
from walstream.config.librdkafka import ClientProperties
from walstream.config.oauth import PROPERTY, OAuth
from walstream.config.password_command import output_of
from walstream.errors import RETRIED, ConfigError, Transient, WalstreamError
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT
from walstream.telemetry.json_codec import loads

_AWS: Final = "aws_msk_iam_sasl_signer"
_LIFE_S: Final = 300.0  # of a token that does not say
_FAR: Final = 5e11  # beyond the year 9999: milliseconds
_EXTENSION: Final = re.compile(r"(?!auth$)[A-Za-z]+")  # RFC 7628
_log = structlog.get_logger()

Token = tuple[str, float] | tuple[str, float, str, dict[str, str]]
"""The token, when it expires (unix seconds), and whom it is for, with extensions."""


def prepared(properties: ClientProperties) -> dict[str, object]:
    """Return a client's properties, with the callback for tokens if it needs one.

    The first one is made now: a client waits for it for 10 s, and then says nothing of
    why there was none. Raises ConfigError where a token's maker is not installed or
    cannot be run, and Transient where it fails.
    """
    given = dict(properties)
    written = given.pop(PROPERTY, None)
    if written is None:
        return given
    oauth = OAuth.model_validate_json(str(written))
    make = _maker(oauth)
    first = [_made(make)]

    def next_token(_config: str) -> Token:
        return first.pop() if first else _again(make)

    given["oauth_cb"] = next_token
    return given


def _again(make: Callable[[], Token]) -> Token:
    """Make the next token; after a failure librdkafka asks again in 10 s."""
    try:
        return _made(make)
    except WalstreamError as error:
        told = {ERROR: str(error.args[0]), HINT: error.hint}
        _log.warning("no new token for Kafka: the last one stays in use", **told)
        raise


def _made(make: Callable[[], Token]) -> Token:
    """Make one that librdkafka takes: what it refuses is told as another error later.

    A stranger's own words may be a secret, and are not passed on.
    """
    try:
        token = make()
        _refuse(token[0], float(token[1]), *token[2:])
    except WalstreamError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it raises
        raise Transient(
            f"oauth: no token could be made: {type(error).__name__}",
            hint=RETRIED,
        ) from None
    return token


def _refuse(
    token: object,
    until: float,
    _principal: str = "",
    extensions: Mapping[str, str] | None = None,
) -> None:
    problem = ""
    if not isinstance(token, str) or not token:
        problem = "the provider returned something that is not a token"
    elif not until > runtime.time():  # nor is NaN
        problem = "the token has expired already: is this machine's clock right?"
    elif until > _FAR:
        problem = "the token's expiry must be given in seconds since 1970"
    elif not all(map(_EXTENSION.fullmatch, extensions or {})):
        problem = "the name of an extension may have letters only"
    if problem:
        raise Transient(f"oauth: {problem}", hint=RETRIED)


def _maker(oauth: OAuth) -> Callable[[], Token]:
    if oauth.provider == "command":
        return partial(_of_command, oauth.command)
    if oauth.provider == "aws_msk_iam":
        return partial(_of_aws(), oauth.region)
    name = oauth.provider.removeprefix("package:")
    made: Callable[[], Token] = plugins.make(
        plugins.TOKENS, name, "oauth", oauth.options
    )
    return made


def _of_command(command: list[str]) -> Token:
    """Run it; it prints {"token": …, "expires_in": seconds} or "expires_at"."""
    what = "oauth.command"
    try:
        told = loads(output_of(command, what))
        token, expires_at = told["token"], told.get("expires_at")
        if expires_at is None:
            until = runtime.time() + _seconds(told.get("expires_in", _LIFE_S))
        else:
            until = _seconds(expires_at)
        extensions = _texts(told.get("extensions", {}))
    except (ValueError, KeyError):
        token = None
    if not isinstance(token, str) or not token:
        raise Transient(
            f'{what}: it prints no {{"token": "…", "expires_in": 300}}, or an'
            " expires_at in seconds",
            hint="run it by hand as walstream's user",
        )
    return token, until, str(told.get("principal", "")), extensions


def _seconds(printed: object) -> float:
    return float(str(printed))  # some print it as a text


def _texts(printed: object) -> dict[str, str]:
    if not isinstance(printed, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - as of a text that is none
    return {str(name): str(one) for name, one in printed.items()}


def _of_aws() -> Callable[[str], Token]:
    try:
        made: Any = import_module(_AWS).MSKAuthTokenProvider
    except ImportError:
        raise ConfigError(
            "oauth.provider: aws_msk_iam needs the package"
            " aws-msk-iam-sasl-signer-python",
            hint="pip install 'walstream[msk]' where walstream is",
        ) from None

    def make(region: str) -> Token:
        token, until_ms = made.generate_auth_token(region)
        return token, until_ms / 1000

    return make
