"""A first configuration: from a connection string and a broker to a file that loads.

A password that was written into the connection string goes into a file of its own,
which only its owner reads; the configuration names that file.
"""

import getpass
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from walstream.config import KafkaSinkConfig, PostgresSource, dsn, tls
from walstream.config.field import table_pattern
from walstream.config.template import Starter, write
from walstream.errors import ConfigError, WalstreamError
from walstream.postgres.table_survey import FoundTable, Survey, survey
from walstream.records.router import matches, topic_part

VARIABLE: Final = "WALSTREAM_DSN"
DEFAULT_BROKERS: Final = "localhost:9092"
_OF_OTHERS: Final = (
    'for other databases use a source of kind = "sql": docs/polling.md has an example'
)
_TABLES_UNKNOWN: Final = ("public.*",)
_NAME: Final = re.compile(r"[a-z0-9_-]+")
_NO_SLOT: Final = re.compile(r"[^a-z0-9_]")
_LONGEST_SLOT: Final = 56  # the publication's twin adds to it, and so does a copy
_BROKER: Final = re.compile(
    r"([A-Za-z_]+://)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?"
)
_UNSPEAKABLE: Final = re.compile(r"[${}]")  # in the path of a ${file:…}


@dataclass(frozen=True, slots=True)
class InitOptions:
    """Answers of an operator."""

    output: Path
    dsn: str = field(repr=False)
    brokers: str = DEFAULT_BROKERS
    source: str = "app"
    patterns: Sequence[str] = ()  # of tables; empty: every schema that holds one
    from_variable: bool = False  # the dsn stands in VARIABLE, and stays there
    insecure: bool = False
    force: bool = False  # write over what is there


@dataclass(frozen=True, slots=True)
class InitResult:
    """Result of `init`, for the operator."""

    secrets: list[Path]  # files that hold what the dsn held
    tables: int  # found, and matched
    topic: str = "TOPIC"  # that some table goes to
    unseen: str = ""  # why the tables are not known


def default_dsn(environment: Mapping[str, str] = os.environ) -> str:
    """Guess a connection string from libpq's variables; never a password."""
    user = environment.get("PGUSER", "")
    database = environment.get("PGDATABASE") or user or getpass.getuser()
    host = environment.get("PGHOST") or "localhost"
    port = environment.get("PGPORT", "")
    server = "" if host.startswith("/") else host
    login = f"{quote(user, safe='')}@" if user else ""
    written = f"postgresql://{login}{server}{port and ':' + port}"
    written += f"/{quote(database, safe='')}"
    return written if server else f"{written}?host={quote(host)}"


def refuse(output: Path, source: str, *, force: bool) -> None:
    """Raise ConfigError for what need not be asked any further."""
    if not _NAME.fullmatch(source):
        raise ConfigError(
            f"{source!r} is not a valid source name: write a-z, 0-9, _ and -"
        )
    if output.suffix.lower() != ".toml":
        raise ConfigError(f"{output}: the file's name has to end in .toml")
    if output.exists() and not force:
        raise ConfigError(
            f"{output} exists already",
            hint="add --force to overwrite it, or --output FILE for another",
        )


def unproven(
    wished_dsn: str, brokers: str, environment: Mapping[str, str] = os.environ
) -> tuple[list[str], list[str]]:
    """Return which servers are off this machine without verified TLS.

    Raises ConfigError where the connection string is none, or the brokers are.
    """
    for broker in brokers.split(","):
        if not _BROKER.fullmatch(broker.strip()):
            raise ConfigError("the brokers are not a comma-separated list of HOST:PORT")
    try:
        dsn.parse(wished_dsn)
    except ValueError as error:
        scheme, is_url, _ = wished_dsn.partition("://")
        hint = _OF_OTHERS if is_url and not scheme.startswith("postgres") else ""
        raise ConfigError(f"the connection string {error}", hint=hint) from None
    source = PostgresSource(kind="postgres", dsn=wished_dsn, sinks=["kafka"])
    sink = KafkaSinkConfig(kind="kafka", producer={"bootstrap.servers": brokers})
    return (
        [one.complaint for one in tls.check_postgres("", source, environment)],
        [one.complaint for one in tls.check_kafka(("sinks", "kafka"), sink)],
    )


def init(
    wishes: InitOptions, environment: Mapping[str, str] = os.environ
) -> InitResult:
    """Write the configuration, and beside it the secrets of its connection string."""
    refuse(wishes.output, wishes.source, force=wishes.force)
    _check_patterns(wishes.patterns)
    off_source, off_sink = unproven(wishes.dsn, wishes.brokers, environment)
    written_dsn, secrets = _extract(wishes)
    seen, unseen = _look(wishes, asked=wishes.insecure or not off_source)
    tables = _wished(wishes, seen.tables)
    whole = [table for table in tables if not table.remark] or tables
    example = whole[0] if whole else FoundTable("public", "orders", None)
    schemas = sorted({f"{table.schema}.*" for table in tables})
    starter = Starter(
        source=wishes.source,
        dsn=written_dsn,
        brokers=wishes.brokers,
        state=str(wishes.output.absolute().parent / "state"),
        tables=wishes.patterns or schemas or _TABLES_UNKNOWN,
        slot=free_slot(wishes.source, seen),
        found=list(map(_line, tables)),
        example=example.full_name,
        insecure_source=wishes.insecure and bool(off_source),
        insecure_sink=wishes.insecure and bool(off_sink),
    )
    try:
        for path, secret in secrets.items():
            write_secret(path, secret, force=wishes.force)
        wishes.output.write_text(write(starter), "utf-8")
    except OSError as error:
        raise ConfigError(
            f"{error.filename}: cannot be written: {error.strerror}"
        ) from None
    topic = ".".join(map(topic_part, (example.schema, example.name)))
    return InitResult(list(secrets), len(tables), topic, unseen)


def _check_patterns(patterns: Sequence[str]) -> None:
    for pattern in patterns:
        try:
            table_pattern(pattern)
        except ValueError as error:
            raise ConfigError(f"the table pattern {pattern!r} {error}") from None


def _look(wishes: InitOptions, *, asked: bool) -> tuple[Survey, str]:
    """Return what exists, or the reason why it cannot be seen."""
    nothing = Survey([], "", frozenset())
    if not asked:
        return nothing, "walstream does not connect to the server without verified TLS"
    try:
        return survey(wishes.dsn), ""
    except WalstreamError as error:
        return nothing, str(error.args[0])


def _wished(wishes: InitOptions, tables: Sequence[FoundTable]) -> list[FoundTable]:
    patterns = wishes.patterns or ["*"]
    return [
        table
        for table in tables
        if any(matches(pattern, table.full_name) for pattern in patterns)
    ]


def free_slot(source: str, seen: Survey) -> str:
    """Name a slot that nobody has: another source, or database, has its own."""
    first = "walstream" if source == "app" else f"walstream_{source}"
    names = [first, f"{first}_{seen.database}"]
    names += [f"{names[-1]}_{number}" for number in range(2, 100)]
    spelled = [_NO_SLOT.sub("_", name.lower())[:_LONGEST_SLOT] for name in names]
    return next((name for name in spelled if name not in seen.slots), spelled[0])


def _line(table: FoundTable) -> str:
    """Return of a table what there is to know, in a comment's line."""
    name = table.full_name
    if not name.isprintable():
        name = json.dumps(name)
    plural = "" if table.rows == 1 else "s"
    rows = "" if table.rows is None else f"  about {table.rows:,} row{plural}"
    return f"{name}{rows}{f'  ({table.remark})' if table.remark else ''}"


def _extract(wishes: InitOptions) -> tuple[str, dict[Path, str]]:
    """Return the connection string with ${file:…} in it, and those files."""
    if wishes.from_variable:
        return f"${{env:{VARIABLE}}}", {}
    output = wishes.output.absolute()
    files: dict[str, Path] = {}

    def place(key: str) -> str:
        files[key] = output.with_suffix(f".{key}")
        return f"${{file:{files[key]}}}"

    written, secrets = dsn.extract(wishes.dsn, place)
    for path in files.values():
        if _UNSPEAKABLE.search(str(path)):
            raise ConfigError(
                f"{path}: a configuration cannot name it: its path has a $, {{ or }}",
                hint=f"set the connection string in {VARIABLE}, or choose another path",
            )
        if path.exists() and not wishes.force:
            raise ConfigError(f"{path} exists already", hint="add --force")
    return written, {files[key]: secret for key, secret in secrets.items()}


def write_secret(path: Path, secret: str, *, force: bool) -> None:
    """Write a file that only its owner reads, from its first byte on."""
    if force:
        path.unlink(missing_ok=True)  # its mode may be another
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(f"{secret}\n")


def next_steps(topic: str) -> Iterator[str]:
    """Name the commands that follow."""
    yield "walstream check"
    yield "walstream run"
    yield f"walstream tail {topic}"
