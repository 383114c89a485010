"""Rules for a sink's encoding, and for the registry that has its schemas."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import SplitResult, urlsplit

from walstream.config import dsn
from walstream.config.debezium import FORMATS, NARROW
from walstream.config.problem import Problem
from walstream.config.registry import STOP, SUBJECT, Registry
from walstream.config.sink import KafkaSinkConfig

_SCHEMES: Final = frozenset({"http", "https"})
_OWN_NAMES: Final = frozenset({"op", "row"})  # formats whose schemas need no options
_UNCHECKED: Final = frozenset({"false", "0", ""})


def check_encoding(name: str, sink: KafkaSinkConfig) -> Iterator[Problem]:
    """Look at what an encoding needs, and at what has no effect without one."""
    path = ("sinks", name)
    if sink.encoding == "json":
        if sink.registry != Registry():
            yield Problem(
                (*path, "registry"),
                'has no effect on encoding "json": write encoding = "avro", or leave '
                "it out",
            )
        return
    if sink.format in _OWN_NAMES:
        yield from _check_key(path, sink)
        yield from _check_registry((*path, "registry"), sink.registry)
        return
    if sink.format not in FORMATS:
        yield Problem(
            (*path, "encoding"),
            f'"{sink.encoding}" is of the formats "op", "debezium", "debezium_row" and '
            f'"row", and the sink has format "{sink.format}"',
        )
        return
    if sink.debezium.schemas:
        yield Problem(
            (*path, "debezium", "schemas"),
            f'has no effect on encoding "{sink.encoding}", whose schemas are in the '
            "registry: leave it out",
        )
    if sink.encoding in NARROW and sink.debezium.adjust == "none":
        yield Problem(
            (*path, "debezium", "adjust"),
            'is "none", and names of schemas may have signs that the encoding does not '
            'allow: write "avro" or "avro_unicode"',
        )
    yield from _check_registry((*path, "registry"), sink.registry)


def _check_key(path: tuple[str, ...], sink: KafkaSinkConfig) -> Iterator[Problem]:
    if sink.key != "json":
        yield Problem(
            (*path, "key"),
            f'has no effect on encoding "{sink.encoding}", whose keys have schemas of '
            "their own: leave it out",
        )


def _check_registry(path: tuple[str, ...], told: Registry) -> Iterator[Problem]:
    if not told.urls:
        yield Problem(
            (*path, "url"),
            "is missing, and the schemas of this encoding are in a registry: write "
            '"http://HOST:8081"',
        )
    if told.on_incompatible != STOP and SUBJECT not in told.on_incompatible:
        yield Problem(
            (*path, "on_incompatible"),
            'is neither "stop" nor the name of a subject with {subject} in it, as '
            '"{subject}-2"',
        )
    for url in told.urls:
        parts = urlsplit(url)
        if not (_has_port(parts) and parts.scheme in _SCHEMES and parts.hostname):
            yield Problem(
                (*path, "url"),
                'is not the address of a registry: write "https://HOST:PORT", and '
                "a login in client, or with %2F for / and the like",
            )
        elif not (told.insecure or dsn.is_local(parts.hostname)):
            if parts.scheme != "https":
                yield Problem(
                    (*path, "url"),
                    f"{parts.hostname} is not this machine, and http is not encrypted: "
                    f'write "https://…", or insecure = true in {".".join(path)}',
                )
            elif told.client.get("ssl.ca.location", "x").lower() in _UNCHECKED:
                yield Problem(
                    (*path, "client", "ssl.ca.location"),
                    f"{parts.hostname} is not this machine, and its certificate is not "
                    "verified so: name a file, or leave it out",
                )


def _has_port(parts: SplitResult) -> bool:
    """Return whether the port is one: a login with / in it ends there, too."""
    try:
        return parts.port != 0
    except ValueError:
        return False
