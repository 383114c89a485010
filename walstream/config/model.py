"""The whole configuration as one validated model.

A Config is complete and frozen: whoever holds one needs neither file nor environment.
The supervisor hands it to its workers over a pipe as JSON, secrets included, since
process arguments and environments are readable by others.
"""

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, PrivateAttr

from walstream.config.field import (
    ByteSize,
    DistinctNames,
    Duration,
    Folder,
    ListenAddress,
    PositiveByteSize,
    PositiveDuration,
    Properties,
    Section,
    Token,
)
from walstream.config.secret import Secrets
from walstream.config.sink import Sink
from walstream.config.source import PostgresSource, Source, SqlSource
from walstream.errors import ConfigError
from walstream.telemetry.human import (
    SIZE_UNITS,
)


class Http(Section):
    listen: ListenAddress = Field(
        default="127.0.0.1:8321",
        description=(
            'Address of the status page, health checks and metrics; "" switches it off.'
        ),
    )
    probes: ListenAddress = Field(
        default="",
        description="Address that serves only /health and /ready, without a token: "
        '"0.0.0.0:8322" for the probes of Kubernetes; "" is none.',
    )
    token: Token = Field(
        default="",
        repr=False,
        description="Token that clients have to send, at least 16 characters; "
        "required unless `listen` is a loopback address.",
    )
    hosts: DistinctNames = Field(
        default=[],
        description="Host names that requests may use, besides addresses and "
        "localhost.",
    )
    metric_labels: Literal["walstream", "psql-streamer"] = Field(
        default="walstream",
        description="Labels of the metrics under psql-streamer's names: name and "
        "type, or psql-streamer's own labels, for its dashboards.",
    )


class Spark(Section):
    master: str = Field(
        default="local[*,4]",
        min_length=1,
        description="Spark's master: local[cores,tries], spark://…, yarn or k8s://….",
    )
    min_size: ByteSize = Field(
        default=2 << 30,
        description="Size of a PostgreSQL backfill from which Spark reads it; one "
        'process reads a smaller one, without Spark and Java. "0" = always Spark.',
    )
    connections: int = Field(
        default=16,
        ge=1,
        description="Maximum number of connections to a database at a time.",
    )
    insecure: bool = Field(
        default=False,
        description="Allow a cluster without Spark's authentication and encryption.",
    )
    conf: Properties = Field(
        default={}, repr=False, description="Any spark.* properties."
    )


class Config(Section):
    state: Folder = Field(
        default="state",
        validate_default=True,
        description="Folder of the positions, relative to this file's folder; it must "
        "outlive the process.",
    )
    shutdown_timeout: PositiveDuration = Field(
        default=20.0,
        description=(
            "How long the drain after a SIGTERM may take before the process ends "
            "anyway."
        ),
    )
    reload_grace: Duration = Field(
        default=600.0,
        description="How long walstream retries a source that has streamed before, "
        "when its server refuses the password or a certificate; ${file:} and ${env:} "
        "are read again before each try.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Lowest level that is logged."
    )
    stats_interval: Duration = Field(
        default=60.0,
        description='How often the lines of /stats are logged; "0" = never.',
    )
    memory: PositiveByteSize = Field(
        default=32 * SIZE_UNITS["MiB"],
        description="Memory that the records in flight of one source may take.",
    )
    http: Http = Field(default=Http(), description="The HTTP listener.")
    sources: dict[str, Source] = Field(
        default={}, description="Where changes come from, by name."
    )
    sinks: dict[str, Sink] = Field(default={}, description="Where changes go, by name.")
    spark: Spark = Field(default=Spark(), description="Backfill and polling.")

    _secrets: Secrets = PrivateAttr(default=Secrets())
    _file: str = PrivateAttr(default="")
    _plain_secrets_in: Path | None = PrivateAttr(default=None)
    _remarks: tuple[tuple[str, str], ...] = PrivateAttr(default=())

    @property
    def secrets(self) -> Secrets:
        """What must be scrubbed from every text that is shown."""
        return self._secrets

    def secrets_of(self, source: str, sinks: Iterable[str]) -> frozenset[str]:
        """Pick those of a source and of some of its sinks: what a task may know."""
        found = [self.sources[source], *(self.sinks[name] for name in sinks)]
        return self.secrets.within(
            {"carried": [one.model_dump(mode="json") for one in found]}
        )

    def with_secrets(self, values: frozenset[str]) -> Self:
        """Return the same configuration that knows these secrets."""
        copy = self.model_copy()
        copy._secrets = Secrets(values)  # noqa: SLF001 - of its own class
        return copy

    def with_file(self, path: str) -> Self:
        """Return the same configuration that knows where it was read from.

        "" is where a command finds it without being told.
        """
        copy = self.model_copy()
        copy._file = path  # noqa: SLF001 - of its own class
        return copy

    @property
    def plain_secrets_in(self) -> Path | None:
        """The file, where secrets stand in it and not beside it; workers ask not."""
        return self._plain_secrets_in

    def with_plain_secrets_in(self, file: Path | None) -> Self:
        """Return the same configuration that knows where its secrets stand."""
        copy = self.model_copy()
        copy._plain_secrets_in = file  # noqa: SLF001 - of its own class
        return copy

    @property
    def remarks(self) -> tuple[tuple[str, str], ...]:
        """Keys that were read and changed nothing, and what stands in their place."""
        return self._remarks

    def with_remarks(self, remarks: Iterable[tuple[str, str]]) -> Self:
        """Return the same configuration with these."""
        copy = self.model_copy()
        copy._remarks = tuple(remarks)  # noqa: SLF001 - of its own class
        return copy

    def command(self, text: str) -> str:
        """Complete a command for an operator: `walstream ...` finds this very file."""
        if not self._file or not text.startswith("walstream "):
            return text
        return f"{text} -c {shlex.quote(self._file)}"

    def source(self, name: str) -> Source:
        """Find a source of any kind; raise ConfigError that names those there are."""
        if name not in self.sources:
            known = ", ".join(sorted(self.sources)) or "none"
            raise ConfigError(
                f"there is no source {name!r}", hint=f"configured are: {known}"
            )
        return self.sources[name]

    @property
    def postgres_sources(self) -> dict[str, PostgresSource]:
        """Pick the sources that are PostgreSQL's, in the order of their names."""
        return {
            name: source
            for name, source in sorted(self.sources.items())
            if isinstance(source, PostgresSource)
        }

    @property
    def sql_sources(self) -> dict[str, SqlSource]:
        """Pick the sources that are polled, in the order of their names."""
        return {
            name: source
            for name, source in sorted(self.sources.items())
            if isinstance(source, SqlSource)
        }

    def postgres_source(self, name: str) -> PostgresSource:
        """Find one of them; raise ConfigError that names those there are."""
        found = self.postgres_sources
        if name not in found:
            raise self._no_source(name, "postgres", found)
        return found[name]

    def sql_source(self, name: str) -> SqlSource:
        """Find a source that is polled; raise ConfigError likewise."""
        found = self.sql_sources
        if name not in found:
            raise self._no_source(name, "sql", found)
        return found[name]

    def _no_source(self, name: str, kind: str, found: Iterable[str]) -> ConfigError:
        what = f"there is no {kind} source {name!r}"
        if (other := self.sources.get(name)) is not None:
            what = f"{name!r} is a {other.kind} source, and this is for {kind} sources"
        return ConfigError(what, hint=f"configured are: {', '.join(found) or 'none'}")

    def to_json(self) -> str:
        """Write everything, secrets in plain: for a pipe, never for a file or a log."""
        return json.dumps(
            {
                "config": self.model_dump(mode="json"),
                "secrets": sorted(self.secrets.values),
                "file": self._file,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        written = json.loads(text)
        config = cls.model_validate(written["config"])
        secrets = frozenset(written["secrets"])
        return config.with_secrets(secrets).with_file(written["file"])
