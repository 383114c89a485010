"""Sinks and sources that installed packages add: the examples, by a real run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_beside import status
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.oracles.topic_reader import Reader, in_order
from tests.support.programs.plugin_package import example, install
from tests.support.programs.walstream import SINK, SOURCE, Walstream
from walstream.config import load
from walstream.errors import ConfigError


@dataclass
class Own(Walstream):
    """One whose source, or sink, is what a package adds."""

    own_source: dict[str, Any] | None = None
    own_sink: dict[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        document = super().document()
        if self.own_source is not None:
            document["sources"][SOURCE] = {"sinks": [SINK], **self.own_source}
        if self.own_sink is not None:
            document["sinks"][SINK] = self.own_sink
        return document


def test_a_sink_of_ones_own_takes_what_leaves_the_handlers(
    postgres18: PostgresServer, installed: Path, tmp_path: Path
) -> None:
    install(
        installed, "walstream.sinks", "file = own_sink:FileSink", example("own_sink")
    )
    file = tmp_path / "changes.txt"
    sink = {
        "kind": "file",
        "options": {"path": str(file)},
        "handlers": [{"kind": "mask", "columns": ["v"], "text": "*"}],
    }

    def rows() -> list[list[str]]:
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.split("\t")[1:] for line in lines]

    with temporary_database(postgres18) as database:
        database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        with Own(database.dsn, "", tmp_path / "run", "", own_sink=sink) as walstream:
            database.execute("INSERT INTO t VALUES (1, 's'); DELETE FROM t")
            wait_until(lambda: len(rows()) == 2, 10, "both are there")
            assert walstream.terminate() == 0
    assert rows() == [
        ["0", "Insert", "public.t", "1", "*"],
        ["1", "Delete", "public.t", "1"],
    ]


def test_a_source_of_ones_own_goes_on_where_it_was(
    kafka: KafkaServer, installed: Path, topic_prefix: str, tmp_path: Path
) -> None:
    text = example("own_source")
    install(installed, "walstream.sources", "lines = own_source:Lines", text)
    file = tmp_path / "journal.txt"
    file.write_text("one\ntwo\nnot whole")
    source = {"kind": "lines", "options": {"path": str(file)}, "verbose": True}
    own = Own("", kafka.bootstrap, tmp_path / "run", topic_prefix, own_source=source)
    own.source = {"slot": "none"}
    with Reader(kafka.bootstrap, topic_prefix) as reader, own as walstream:
        records = in_order(reader.count(2))
        assert [record.new for record in records] == [
            {"place": "0", "line": "one"},
            {"place": "4", "line": "two"},
        ]
        assert [record.key for record in records] == [b'["0"]', b'["4"]']
        assert {record.topic for record in records} == {f"{topic_prefix}public.lines"}
        assert len(walstream.said("public.lines")) >= 2

        def told() -> bool:
            (shown,) = status(walstream)["sources"]
            return (shown["state"], shown["delivered"]) == ("streaming", 2)

        wait_until(told, 10, "its status says so")
        assert walstream.terminate() == 0
        (shown,) = status(walstream)["sources"]
        assert (shown["state"], shown["resume"]) == ("stopped", "0/8")
        with file.open("a") as opened:
            opened.write(" but now\n")
        walstream.start().streaming()
        assert in_order(reader.count(3))[2].new["line"] == "not whole but now"


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"options": {}}, "sinks.kafka: the package's 'file' cannot be made: KeyError"),
        ({"topic": "x"}, "sinks.kafka.topic: is unknown: known are"),
        ({"kind": "fil"}, "sinks.kafka.kind: write 'kafka', 'log', 'discard', 'file'"),
    ],
)
def test_what_a_package_does_not_take_is_named(
    change: dict[str, Any],
    wanted: str,
    installed: Path,
    postgres18: PostgresServer,
    tmp_path: Path,
) -> None:
    text = example("own_sink")
    install(installed, "walstream.sinks", "file = own_sink:FileSink", text)
    sink = {"kind": "file", "options": {"path": "x"}, **change}
    with temporary_database(postgres18) as database:
        own = Own(database.dsn, "", tmp_path / "run", "", own_sink=sink)
        own.start().ends_with(2, wanted)
        own.close()


def test_no_backfill_goes_into_a_packages_sink(installed: Path, tmp_path: Path) -> None:
    text = example("own_sink")
    install(installed, "walstream.sinks", "file = own_sink:FileSink", text)
    path = tmp_path / "walstream.toml"
    path.write_text(
        '[sources.app]\nkind = "postgres"\ndsn = "host=/run/x"\nsinks = ["own"]\n'
        '[sinks.own]\nkind = "file"\n'
    )
    with pytest.raises(ConfigError, match=r'sources\.app\.backfill: .*write "never"'):
        load(path, {})
