"""Connection strings as libpq reads them: hosts, parameters, and a masked form.

Only `postgres/` may load libpq, and the configuration has to know two things before
anything connects: where the server is (for TLS) and which part is secret. So this reads
the URI and the key=value form by libpq's rules; a test compares it with libpq itself.
What libpq would misread aloud ("could not translate host name <half a password>") is
refused here without a word of it.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

from walstream.config.password_command_dsn import take_out
from walstream.config.secret_keys import MASK, is_secret_key

URI_SCHEME: Final = re.compile(r"postgres(?:ql)?://")
_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_BRACKETED: Final = re.compile(r"\[([^\]]*)\](?::(.*))?")
_PORTS: Final = re.compile(r"[0-9]*(?:,[0-9]*)*")
_WANTED: Final = (
    'write "postgresql://user@host:5432/database" or "host=… dbname=… user=…"'
)


def parse(dsn: str) -> dict[str, str]:
    """Parameters of a DSN, decoded; ValueError names no part of it."""
    scheme = URI_SCHEME.match(dsn)
    if not dsn.strip():
        raise ValueError(f"is empty: {_WANTED}")
    parameters = _parse_uri(dsn[scheme.end() :]) if scheme else _parse_pairs(dsn)
    if "@" in parameters.get("host", "").lstrip("@"):
        raise ValueError("has an @ in its host: in a password write @ as %40")
    if not _PORTS.fullmatch(parameters.get("port", "")):
        raise ValueError("has no number as its port: in a password write / as %2F")
    return parameters


def mask(dsn: str) -> str:
    """Show the same connection without its secrets; nothing where it is unreadable."""
    dsn, _ = take_out(dsn)
    scheme = URI_SCHEME.match(dsn)
    try:
        parameters = parse(dsn)
    except ValueError:
        return MASK
    if not scheme:
        return " ".join(
            f"{key}={_quote(MASK if is_secret_key(key) else value)}"
            for key, value in parameters.items()
        )
    credentials, rest = _split_credentials(dsn[scheme.end() :])
    address, mark, query = rest.partition("?")
    if credentials is not None:
        user, colon, _ = credentials.partition(":")
        address = f"{user}{colon and ':' + MASK}@{address}"
    return scheme[0] + address + mark + "&".join(map(_mask_pair, query.split("&")))


def secrets(dsn: str) -> set[str]:
    """Every secret in it, both decoded and as written."""
    try:
        found = {v for k, v in parse(dsn).items() if is_secret_key(k)}
    except ValueError:
        return {dsn}
    scheme = URI_SCHEME.match(dsn)
    if scheme:
        credentials, rest = _split_credentials(dsn[scheme.end() :])
        found.add((credentials or "").partition(":")[2])
        for pair in rest.partition("?")[2].split("&"):
            key, _, value = pair.partition("=")
            if is_secret_key(key):
                found.add(value)
    return found - {""}


def extract(dsn: str, place: Callable[[str], str]) -> tuple[str, dict[str, str]]:
    """Put `place(key)` where each secret stands; give the secrets as they stood.

    They are spelt as the connection string spells them, so that each fits in again.
    """
    found: dict[str, str] = {}
    written, end = "", 0
    for name, start, stop in _secret_spans(dsn):
        key = name if name not in found else f"{name}{len(found) + 1}"
        found[key] = dsn[start:stop]
        written += _plain(dsn[end:start]) + place(key)
        end = stop
    return written + _plain(dsn[end:]), found


def _secret_spans(dsn: str) -> Iterator[tuple[str, int, int]]:
    """Find the secrets in their order: key, begin and end."""
    scheme = URI_SCHEME.match(dsn)
    if not scheme:
        for pair in _PAIR.finditer(dsn):
            group = "plain" if pair["quoted"] is None else "quoted"
            if is_secret_key(pair["key"]) and pair[group]:
                yield pair["key"], *pair.span(group)
        return
    credentials, rest = _split_credentials(dsn[scheme.end() :])
    user, _, password = (credentials or "").partition(":")
    if password:
        start = scheme.end() + len(user) + 1
        yield "password", start, start + len(password)
    query = rest.partition("?")[2]
    start = len(dsn) - len(query)
    for pair_text in query.split("&"):
        key, _, value = pair_text.partition("=")
        if value and is_secret_key(key):
            yield key, start + len(key) + 1, start + len(pair_text)
        start += len(pair_text) + 1


def _plain(text: str) -> str:
    """Return a text that the configuration reads unchanged."""
    return text.replace("${", "$${")


def servers(
    parameters: Mapping[str, str], environment: Mapping[str, str]
) -> list[tuple[str, str]] | None:
    """(host, port) of each server that libpq would try; None: a service file decides.

    An empty host is the local socket. `hostaddr` wins, since libpq connects to it.
    """
    addresses = parameters.get("hostaddr") or parameters.get("host")
    if not addresses and (parameters.get("service") or environment.get("PGSERVICE")):
        return None
    addresses = (
        addresses or environment.get("PGHOSTADDR") or environment.get("PGHOST") or ""
    )
    hosts = addresses.split(",")
    ports = (parameters.get("port") or environment.get("PGPORT") or "").split(",")
    if len(ports) != len(hosts):
        ports = ports[:1] * len(hosts)
    return [(host, port or "5432") for host, port in zip(hosts, ports, strict=True)]


def database(parameters: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Name the database that libpq would ask for; "" where that is not known here."""
    return (
        parameters.get("dbname")
        or environment.get("PGDATABASE")
        or parameters.get("user")
        or environment.get("PGUSER")
        or ""
    )


def host(parameters: Mapping[str, str]) -> str:
    """Name the server as a DSN names it; "" where a file or a variable does."""
    return parameters.get("host") or parameters.get("hostaddr") or ""


def is_local(host: str) -> bool:
    """Return whether no wire leads there: a loopback address or a socket's folder."""
    if not host or host.startswith(("/", "@")):
        return True
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False  # a name may resolve to anything
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _parse_uri(rest: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    credentials, rest = _split_credentials(rest)
    if credentials is not None:
        user, _, password = credentials.partition(":")
        parameters["user"], parameters["password"] = _decode(user), _decode(password)
    address, _, query = rest.partition("?")
    authority, _, database = address.partition("/")
    hosts, ports = [], []
    for server in authority.split(","):
        bracketed = _BRACKETED.fullmatch(server)
        if bracketed:
            host, port = bracketed[1], bracketed[2] or ""
        elif server.startswith("["):
            raise ValueError("has a [ without its ]: write [::1]:5432")
        else:
            host, _, port = server.partition(":")
        hosts.append(_decode(host))
        ports.append(_decode(port))
    parameters["host"], parameters["port"] = ",".join(hosts), ",".join(ports)
    parameters["dbname"] = _decode(database)
    for pair in query.split("&") if query else ():
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError("has a parameter without a value after its ?")
        parameters[_decode(key)] = _decode(value)
    if parameters.pop("ssl", None) == "true":  # libpq's courtesy to JDBC
        parameters["sslmode"] = "require"
    return {key: value for key, value in parameters.items() if value}


def _parse_pairs(dsn: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    offset = 0
    while match := _PAIR.match(dsn, offset):
        key, quoted, plain = match["key"], match["quoted"], match["plain"]
        value = plain if quoted is None else quoted
        parameters[key] = re.sub(r"\\(.?)", r"\1", value, flags=re.DOTALL)
        offset = match.end()
    if dsn[offset:].strip(_SPACE):
        name = _VARIABLE.fullmatch(dsn.strip(_SPACE))
        meant = f"did you mean ${{env:{name[1]}}}?" if name else _WANTED
        raise ValueError(f"is not a connection string: {meant}")
    return parameters


_VARIABLE: Final = re.compile(r"\$\{?(\w+)\}?")  # of a shell
_SPACE: Final = " \t\n\r\v\f"
_PAIR: Final = re.compile(
    r"""[ \t-\r]*(?P<key>[^= \t-\r]+)[ \t-\r]*=[ \t-\r]*
    (?:'(?P<quoted>(?:[^'\\]|\\.)*)'|(?P<plain>(?!')(?:[^\\ \t-\r]|\\.|\\$)*))""",
    re.VERBOSE | re.DOTALL,
)


def _split_credentials(rest: str) -> tuple[str | None, str]:
    """User and password end at the first @, if no / stands before it."""
    end = re.search(r"[@/]", rest)
    if end and end[0] == "@":
        return rest[: end.start()], rest[end.end() :]
    return None, rest


def _decode(text: str) -> str:
    text = text.strip(_SPACE)
    if not set(_SPACE).isdisjoint(text):
        raise ValueError("has a space in it: write it as %20")
    if _PERCENT.search(text):
        raise ValueError("has a % that starts no %XX: write a plain % as %25")
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise ValueError("has %XX bytes that are not UTF-8") from None


def _quote(value: str) -> str:
    if re.fullmatch(r"[^'\\\s]+", value):
        return value
    return "'" + re.sub(r"(['\\])", r"\\\1", value) + "'"


def _mask_pair(pair: str) -> str:
    key, equals, _ = pair.partition("=")
    return f"{key}={MASK}" if equals and is_secret_key(key) else pair
