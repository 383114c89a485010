"""What this version does not do is named before anything is created, all of it."""

import sys
from pathlib import Path

import pytest

from tests.support.programs.plugin_package import install
from walstream import plugins
from walstream.config import Config, load
from walstream.errors import ConfigError
from walstream.service.feature_support import refuse_unsupported, risks, unsupported

TEXT = """
[sources.app]
kind = "postgres"
dsn = "host=/run/postgresql"
backfill = "never"
sinks = ["kafka"]
{source}
[sinks.kafka]
kind = "kafka"
{sink}
[sinks.kafka.producer]
"bootstrap.servers" = "localhost:9092"
"""


def configured(folder: Path, *, source: str = "", sink: str = "") -> Config:
    path = folder / "walstream.toml"
    path.write_text(TEXT.format(source=source, sink=sink))
    return load(path, {})


def test_what_is_built_is_not_refused(tmp_path: Path) -> None:
    config = configured(tmp_path)
    assert not list(unsupported(config))
    assert not list(risks(config))
    refuse_unsupported(config)


@pytest.mark.parametrize(
    ("source", "key"),
    [
        ('encoding = "LATIN1"', "sources.app.encoding"),
    ],
)
def test_what_is_not_built_is_refused(tmp_path: Path, source: str, key: str) -> None:
    config = configured(tmp_path, source=source)
    with pytest.raises(ConfigError, match=f"^{key}"):
        refuse_unsupported(config)


def test_all_that_is_not_built_is_named(tmp_path: Path) -> None:
    config = configured(
        tmp_path,
        source='encoding = "LATIN1"',
    )
    named = [str(error.args[0]).partition(":")[0] for error in unsupported(config)]
    assert named == [
        "sources.app.encoding",
    ]


@pytest.mark.parametrize(
    ("group", "sink"),
    [
        ("walstream.formats", 'format = "own"'),
        ("walstream.handlers", 'handlers = [{ kind = "own" }]'),
    ],
)
def test_what_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, sink: str
) -> None:
    text = "raise ValueError('broken')\n"
    folder = tmp_path / "installed"
    folder.mkdir()
    install(folder, group, "own = broken:Broken", text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    plugins.names.cache_clear()
    plugins.load.cache_clear()
    (error,) = unsupported(configured(tmp_path, sink=sink))
    assert "'own'" in str(error)
    assert "ValueError: broken" in str(error)
    plugins.names.cache_clear()


def test_polled_rows_go_to_kafka_alone(tmp_path: Path) -> None:
    path = tmp_path / "walstream.toml"
    path.write_text(
        '[sources.old]\nkind = "sql"\nurl = "sqlite:///x"\nsinks = ["rows"]\n'
        '[sources.old.tables.t]\nprimary_key = "id"\n'
        '[sinks.rows]\nkind = "log"\nformat = "row"\n'
    )
    (error,) = unsupported(load(path, {}))
    assert str(error).startswith("sinks.rows.kind: rows of a sql source")


def test_no_source_is_refused() -> None:
    with pytest.raises(ConfigError, match="no source"):
        refuse_unsupported(Config())


def test_what_was_given_up_is_named_by_its_key(tmp_path: Path) -> None:
    config = configured(
        tmp_path,
        source="insecure = true",
        sink="at_most_once = true",
    )
    assert [risk.key for risk in risks(config)] == [
        "sources.app.insecure",
        "sinks.kafka.at_most_once",
    ]


def test_an_open_cluster_is_named(tmp_path: Path) -> None:
    path = tmp_path / "walstream.toml"
    open_cluster = '[spark]\nmaster = "yarn"\ninsecure = true\n'
    path.write_text(TEXT.format(source="", sink="") + open_cluster)
    assert [risk.key for risk in risks(load(path, {}))] == ["spark.insecure"]


def test_what_was_read_in_vain_is_named_too(tmp_path: Path) -> None:
    config = configured(tmp_path).with_remarks([("repliqate.redis_addr", "not asked")])
    assert list(risks(config)) == [("repliqate.redis_addr", "not asked")]
