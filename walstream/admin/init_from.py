"""A configuration of a Debezium connector's: what becomes of it, and its file.

Nothing is written before everything is known. Secrets of the connector's file go into
files of their own, which only their owner reads.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from walstream.admin.connector import connector_file, document
from walstream.admin.connector.draft import Draft, Fate, KeyReport
from walstream.admin.connector.translation import translate
from walstream.admin.init import write_secret
from walstream.config import KafkaSinkConfig, PostgresSource, dsn, tls
from walstream.errors import ConfigError, HistoryError

TO_DECIDE: Final = HistoryError.exit_code
"""Exit code where an operator has to decide about a key."""
_UNSPEAKABLE: Final = re.compile(r"[${}]")  # in the path of a ${file:…}


@dataclass(frozen=True, slots=True)
class InitFromOptions:
    """Answers of an operator."""

    file: Path
    output: Path
    worker: Path | None = None
    brokers: str = ""
    source: str = "app"
    force: bool = False


@dataclass(frozen=True, slots=True)
class InitFrom:
    """A translation that is not written yet."""

    options: InitFromOptions
    draft: Draft
    secrets: Mapping[Path, str] = field(repr=False)
    unproven: tuple[list[str], list[str]]  # servers without verified TLS: source, sink

    @classmethod
    def read(
        cls, options: InitFromOptions, environment: Mapping[str, str] = os.environ
    ) -> "InitFrom":
        """Translate; raises ConfigError where that cannot be done at all."""
        file = connector_file.read(options.file, options.worker)
        draft, references = translate(
            file, options.output, source=options.source, brokers=options.brokers
        )
        for path in references.files:
            if _UNSPEAKABLE.search(str(path)):
                raise ConfigError(
                    f"{path}: a configuration cannot name it: its path has a $, {{ or "
                    "}",
                    hint="choose another --output",
                )
            if path.exists() and not options.force:
                raise ConfigError(f"{path} exists already", hint="add --force")
        return cls(options, draft, references.files, _unproven(draft, environment))

    @property
    def reports(self) -> list[KeyReport]:
        """What is said of each key of the file."""
        return list(self.draft.reports())

    @property
    def exit_code(self) -> int:
        decided = all(one.fate is not Fate.TO_DECIDE for one in self.reports)
        return 0 if decided else TO_DECIDE

    def write(self, *, insecure: bool) -> list[Path]:
        """Write the file and its secrets, whose paths are returned."""
        off_source, off_sink = self.unproven
        output = self.options.output
        text = document.write(
            self.draft,
            state=str(output.absolute().parent / "state"),
            insecure=(insecure and bool(off_source), insecure and bool(off_sink)),
        )
        try:
            for path, secret in self.secrets.items():
                write_secret(path, secret, force=self.options.force)
            output.write_text(text, "utf-8")
        except OSError as error:
            raise ConfigError(
                f"{error.filename}: cannot be written: {error.strerror}"
            ) from None
        return list(self.secrets)


def _unproven(
    draft: Draft, environment: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Return which servers are off this machine without verified TLS."""
    written = draft.text("source", "dsn")
    try:
        dsn.parse(written)
    except ValueError as error:
        raise ConfigError(f"of the connector's database.… a dsn {error}") from None
    producer = {key: str(value) for key, value in draft.tables["producer"].items()}
    source = PostgresSource(kind="postgres", dsn=written, sinks=["kafka"])
    sink = KafkaSinkConfig(kind="kafka", producer=producer)
    return (
        [one.complaint for one in tls.check_postgres("", source, environment)],
        [one.complaint for one in tls.check_kafka(("sinks", "kafka"), sink)],
    )
