"""Secrets, and the one scrubber for logs and errors.

libpq and librdkafka put what they were given into their messages, so every text that
comes from them passes through `Secrets.scrub`. It knows the secrets of this
configuration by value, and the usual shapes of others.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlencode

from walstream.config import dsn
from walstream.config.password_command_dsn import take_out
from walstream.config.secret_keys import HIDDEN_WORDS, MASK, is_secret_key

SHORTEST: Final = 3  # what is shorter would take every text apart
SHORTEST_LINE: Final = 16  # of a key file: its lines are secrets of their own
_URLS: Final = frozenset({"url", "proxy"})
WHOLE_KEYS: Final = frozenset({"dsn", *_URLS})  # keys whose value has a secret in it
_PAIR: Final = "basic.auth.user.info"  # USER:PASSWORD
_SWITCHES: Final = frozenset({"true", "false"})

# Bounded everywhere: a scrubber that can be made slow is a fault of its own.
_ASSIGNED: Final = re.compile(
    rf"((?:{HIDDEN_WORDS})[\w.\-]{{0,40}}\s{{0,3}}=\s{{0,3}})"
    r"('(?:[^'\\]|\\.){0,4096}'|\"(?:[^\"\\]|\\.){0,4096}\"|\{[^}]{0,4096}\}|[^\s;&]+)",
    re.IGNORECASE,
)
_JSON: Final = re.compile(
    rf"((?:{HIDDEN_WORDS})[\w.\-]{{0,40}}[\"']\s{{0,3}}:\s{{0,3}})"
    r"('(?:[^'\\]|\\.){0,4096}'|\"(?:[^\"\\]|\\.){0,4096}\")",
    re.IGNORECASE,
)
_USERINFO: Final = re.compile(r"(://[^\s:/@]{0,256}:)\S{0,512}@")
_URL_USERINFO: Final = re.compile(r"(?P<user>[^:/@]*):(?P<password>.*)@", re.DOTALL)


@dataclass(frozen=True)
class Secrets:
    values: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"Secrets({len(self.values)})"

    def scrub(self, text: str) -> str:
        """Return the text with every secret in it replaced by ***."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        return scrub_shapes(text)

    def within(self, document: Mapping[str, object]) -> frozenset[str]:
        """Pick those that stand in a part of the configuration, in any spelling."""
        spelt = set(collect(document))
        texts = [text for _, text in _leaves(document)]
        return frozenset(
            value
            for value in self.values
            if value in spelt or any(value in text for text in texts)
        )

    @cached_property
    def _known(self) -> re.Pattern[str] | None:
        forms = {form for value in self.values for form in _forms(value)}
        longest_first = sorted(forms, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first))) if forms else None


def scrub_shapes(text: str) -> str:
    """Hide what looks like a secret: password=…, PWD=…, ://user:password@."""
    text = _USERINFO.sub(rf"\1{MASK}@", text)
    return _JSON.sub(rf"\1{MASK}", _ASSIGNED.sub(rf"\1{MASK}", text))


def collect(document: Mapping[str, object]) -> Iterator[str]:
    """Every secret of a configuration, found by the names of its keys."""
    for key, value in _leaves(document):
        if is_secret_key(key):
            if value not in _SWITCHES:  # else no log could say "true" again
                yield value
            if key == _PAIR:
                yield value.partition(":")[2]
                yield _header(value)
        elif key == "dsn":
            yield from dsn.secrets(value)
        elif key in _URLS:
            yield from _url_secrets(value)


def mask_value(key: str, value: str) -> str:
    """Show the value of this key as far as it may be shown."""
    if is_secret_key(key):
        return value and MASK
    if key == "dsn":
        return dsn.mask(value)
    if key in _URLS:
        return _mask_url(value)
    return value


def _leaves(node: object, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping):
        for name, child in node.items():
            yield from _leaves(child, str(name))
    elif isinstance(node, list):
        for child in node:
            yield from _leaves(child, key)
    elif isinstance(node, str):
        yield key, node


def _forms(value: str) -> Iterable[str]:
    """List the ways in which a library may print it."""
    plain = value.strip()
    forms = {value, plain, quote(plain, safe=""), quote_plus(plain), repr(plain)[1:-1]}
    forms.add(json.dumps(plain)[1:-1])
    forms.add(quote(plain, safe=" +"))  # SQLAlchemy
    forms.add(plain.replace("\\", "\\\\").replace("'", "\\'"))
    forms.update(
        line
        for line in plain.splitlines()
        if len(line) >= SHORTEST_LINE and not line.startswith("-----")
    )
    return (form for form in forms if len(form) >= SHORTEST)


def _split_url(url: str) -> tuple[str, str, str, str]:
    """Scheme with ://, user, password, rest.

    The password ends at the *last* @: where a driver would end it earlier, more is
    hidden than needs be, never less.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "", url
    found = _URL_USERINFO.match(rest)
    if not found:
        return scheme + mark, "", "", rest
    return scheme + mark, found["user"], found["password"], rest[found.end() :]


def _mask_url(url: str) -> str:
    url, _ = take_out(url)
    scheme, user, password, rest = _split_url(url)
    address, mark, query = rest.partition("?")
    userinfo = f"{user}:{MASK}@" if password else ""
    if mark:
        pairs = parse_qsl(query, keep_blank_values=True)
        hidden = [(k, MASK if is_secret_key(k) else scrub_shapes(v)) for k, v in pairs]
        query = urlencode(hidden, safe="*/:;{}")
    return scheme + userinfo + address + mark + query


def _header(pair: str) -> str:
    """Return a login as the header of a request has it."""
    return b64encode(pair.encode()).decode()


def _url_secrets(url: str) -> Iterator[str]:
    _, user, password, rest = _split_url(url)
    if password:
        yield _header(f"{unquote(user)}:{unquote(password)}")
    yield password
    yield unquote(password)
    yield password.partition("@")[0]  # as SQLAlchemy would end it
    for key, value in parse_qsl(rest.partition("?")[2]):
        if is_secret_key(key):
            yield value
        else:  # ODBC: a whole connection string in one parameter
            yield from (found[2].strip("{}'\"") for found in _ASSIGNED.finditer(value))
