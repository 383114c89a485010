"""What this version does not do is named before anything is created, all of it."""

from pathlib import Path

import pytest

from tests.extending import install
from walstream import extension
from walstream.config import Config, load
from walstream.errors import ConfigError
from walstream.supported import refuse_unsupported, risks, unsupported

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
    ("source", "sink", "key"),
    [
        ('encoding = "LATIN1"', "", "sources.app.encoding"),
        ('heartbeat = "10s"', "", "sources.app.heartbeat"),
        ("", 'on_too_large = "large"', "sinks.kafka.on_too_large"),
        ("", "tombstones = true", "sinks.kafka.tombstones"),
    ],
)
def test_what_is_not_built_is_refused(
    tmp_path: Path, source: str, sink: str, key: str
) -> None:
    config = configured(tmp_path, source=source, sink=sink)
    with pytest.raises(ConfigError, match=f"^{key}"):
        refuse_unsupported(config)


def test_all_that_is_not_built_is_named(tmp_path: Path) -> None:
    config = configured(
        tmp_path,
        source='heartbeat = "1s"',
        sink='tombstones = true\non_too_large = "large"',
    )
    named = [str(error.args[0]).partition(":")[0] for error in unsupported(config)]
    assert named == [
        "sources.app.heartbeat is not in this version",
        "sinks.kafka.on_too_large",
        "sinks.kafka.tombstones",
    ]


def test_a_format_that_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "raise ValueError('broken')\n"
    folder = tmp_path / "installed"
    folder.mkdir()
    install(folder, "walstream.formats", "own = broken_format:Encoder", text)
    monkeypatch.syspath_prepend(folder)
    extension.names.cache_clear()
    (error,) = unsupported(configured(tmp_path, sink='format = "own"'))
    assert "'own'" in str(error)
    assert "ValueError: broken" in str(error)
    extension.names.cache_clear()


def test_other_kinds_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "walstream.toml"
    path.write_text(
        '[sources.app]\nkind = "postgres"\ndsn = "host=/run/postgresql"\n'
        'sinks = ["rows"]\n[sinks.rows]\nkind = "log"\n'
    )
    (only,) = unsupported(load(path, {}))
    assert str(only).startswith("sinks.rows.kind: 'log'")


def test_no_source_is_refused() -> None:
    with pytest.raises(ConfigError, match="no source"):
        refuse_unsupported(Config())


def test_what_was_given_up_is_named_by_its_key(tmp_path: Path) -> None:
    config = configured(
        tmp_path,
        source='insecure = true\ndetach_after = "1min"',
        sink="at_most_once = true",
    )
    assert [risk.key for risk in risks(config)] == [
        "sources.app.insecure",
        "sources.app.detach_after",
        "sinks.kafka.at_most_once",
    ]


def test_what_was_read_in_vain_is_named_too(tmp_path: Path) -> None:
    config = configured(tmp_path).with_remarks([("repliqate.redis_addr", "not asked")])
    assert list(risks(config)) == [("repliqate.redis_addr", "not asked")]
