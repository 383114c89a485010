"""Tokens for SASL/OAUTHBEARER: who makes them, and how each client gets them.

librdkafka asks for one when a client begins, and again when 80 % of its life is over.
What to do then is written in the client's properties, which reach every producer,
admin client, reader and Spark task: `prepared` makes the callback of it.
"""

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final

from walstream import extension
from walstream.config.oauth import PROPERTY, OAuth
from walstream.errors import ConfigError, Transient, WalstreamError
from walstream.password_command import output_of

_AWS: Final = "aws_msk_iam_sasl_signer"
_LIFE_S: Final = 300.0  # of a token that does not say

Token = tuple[str, float] | tuple[str, float, str, dict[str, str]]
"""The token, when it expires (unix seconds), and whom it is for, with extensions."""


def prepared(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Give a client's properties with the callback that makes its tokens, if it wants.

    The first one is made now: a client waits for it for 10 s, and then says nothing of
    why there was none. Raises ConfigError where a token's maker is not installed or
    cannot be run, and Transient where it fails.
    """
    given = dict(properties)
    written = given.pop(PROPERTY, None)
    if written is None:
        return given
    oauth = OAuth.model_validate_json(written)
    make = _maker(oauth)
    first = [_made(make)]

    def next_token(_config: str) -> Token:
        return first.pop() if first else _made(make)

    given["oauth_cb"] = next_token
    return given


def _made(make: Callable[[], Token]) -> Token:
    """Make one; a stranger's own words may be a secret, and are not passed on."""
    try:
        return make()
    except WalstreamError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it raises
        raise Transient(
            f"oauth: no token could be made: {type(error).__name__}",
            hint="walstream tries again by itself",
        ) from None


def _maker(oauth: OAuth) -> Callable[[], Token]:
    if oauth.provider == "command":
        return partial(_of_command, oauth.command)
    if oauth.provider == "aws_msk_iam":
        return partial(_of_aws(), oauth.region)
    name = oauth.provider.removeprefix("package:")
    made: Callable[[], Token] = extension.make(
        extension.TOKENS, name, "oauth", oauth.options
    )
    return made


def _of_command(command: list[str]) -> Token:
    """Run it; it prints {"token": …, "expires_in": seconds} or "expires_at"."""
    what = "oauth.command"
    try:
        told = json.loads(output_of(command, what))
        token = told["token"]
        until = told.get("expires_at")
        if until is None:
            until = time.time() + float(told.get("expires_in", _LIFE_S))
        extensions = {str(k): str(v) for k, v in told.get("extensions", {}).items()}
        principal = str(told.get("principal", ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        token = None
    if not isinstance(token, str) or not token:
        raise Transient(
            f'{what}: it prints no {{"token": "…", "expires_in": 300}}',
            hint="run it by hand as walstream's user",
        )
    return token, float(until), principal, extensions


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
