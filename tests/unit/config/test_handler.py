"""Handlers: what each kind demands, and how a wrong one is named."""

from pathlib import Path

import pytest

from tests.support.programs.plugin_package import install
from walstream import plugins
from walstream.config import Config, load, mask
from walstream.config.handler import MaskHandler, PackageHandler
from walstream.errors import ConfigError

SOURCE = """
[sources.app]
kind = "postgres"
dsn = "host=/run/postgresql"
sinks = ["log"]
[sinks.log]
kind = "log"
"""
OUTBOX = 'kind = "outbox"\ntables = ["public.o"]'
CANARY = "cAnArY-cAnArY-cAnArY"


def loaded(folder: Path, *handlers: str) -> Config:
    path = folder / "walstream.toml"
    parts = [f"[[sinks.log.handlers]]\n{text}\n" for text in handlers]
    path.write_text(SOURCE + "".join(parts), "utf-8")
    return load(path, {})


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ('kind = "maks"', "kind: write 'passthrough', 'drop_columns'"),
        ("", "kind: is missing: write 'passthrough'"),
        ('kind = "drop_columns"', "columns: is missing"),
        ('kind = "drop_columns"\ncolumns = []', "columns: is empty"),
        ('kind = "drop_columns"\ncolumn = ["a"]', "column: is unknown: did you mean"),
        ('kind = "rename_columns"\ncolumns = {}', "columns: is empty"),
        ('kind = "mask"\ncolumns = ["a"]', "write either text or secret"),
        (
            f'kind = "mask"\ncolumns = ["a"]\ntext = ""\nsecret = "{CANARY}"',
            "write either text or secret",
        ),
        ('kind = "mask"\ncolumns = ["a"]\nsecret = "short"', "secret: is too short"),
        ('kind = "filter"\noperations = ["upsert"]', "operations[0]"),
        ('kind = "filter"\ncolumn = "a"', "write column with one of equals"),
        ('kind = "filter"\nequals = "a"', "write column with one of equals"),
        (
            'kind = "filter"\ncolumn = "a"\nequals = "a"\nis_null = true',
            "write column with one of equals",
        ),
        ('kind = "outbox"', "tables: is missing"),
        ('kind = "outbox"\ntables = []', "tables: is empty"),
        (f'{OUTBOX}\ntopic = "a b{{value}}"', 'topic: "a b{value}" is not a valid'),
        (f'{OUTBOX}\ntopic = "a.{{schema}}"', 'topic: "a.{schema}" is not a valid'),
        (f'{OUTBOX}\nkey = ""', "key: is empty"),
        (f'{OUTBOX}\nheaders = {{ id = "a" }}', "the header id is the event's"),
        (f'{OUTBOX}\nenvelope = {{ a = "a" }}', "raw has no place for envelope"),
        (f'{OUTBOX}\nnulls = "keep"', "raw has no place for envelope or nulls"),
        (
            f'{OUTBOX}\npayload_form = "expand"\nenvelope = {{ payload = "a" }}',
            "the field payload is there",
        ),
        (f"{OUTBOX}\nschemas = true", "schemas needs key_form json, or another"),
        (f"{OUTBOX}\nmax_topics = 0", "max_topics: is 0: write a number from 1 on"),
        ('kind = "passthrough"\ntables = ["t"]', 'tables[0]: "t" cannot match a table'),
    ],
)
def test_a_mistake_is_named_with_its_path(
    tmp_path: Path, written: str, wanted: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, 'kind = "passthrough"', written)
    assert "sinks.log.handlers[1]" in str(raised.value)
    assert wanted in str(raised.value)
    assert CANARY not in str(raised.value)
    assert "short" not in str(raised.value).replace("is too short", "")


def test_a_secret_is_shown_nowhere_and_the_rest_is_read_again(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        f'kind = "mask"\ncolumns = ["a"]\nsecret = "{CANARY}"',
        'kind = "rename_columns"\ncolumns = { a = "b c" }',
        'kind = "filter"\ncolumn = "a"\none_of = ["x", "y"]',
        f'{OUTBOX}\nkey = "k"\ntopic = "o.{{value}}"\nheaders = {{ "a b" = "c" }}',
    )
    assert isinstance(config.sinks["log"].handlers[0], MaskHandler)
    shown = mask(config)
    assert CANARY not in shown + repr(config) + config.secrets.scrub(f"x {CANARY}")
    again = tmp_path / "shown.toml"
    again.write_text(shown.replace("***", CANARY), "utf-8")
    assert load(again, {}).sinks == config.sinks
    assert Config.from_json(config.to_json()).sinks == config.sinks


def test_what_a_package_adds_takes_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "installed"
    folder.mkdir()
    install(folder, "walstream.handlers", "own = own_handlers:Own", "Own = 1\n")
    monkeypatch.syspath_prepend(folder)
    plugins.names.cache_clear()
    try:
        text = (
            'kind = "own"\n[sinks.log.handlers.options]\na = [1, "x"]\npassword = "{}"'
        )
        config = loaded(tmp_path, text.format(CANARY))
        (handler,) = config.sinks["log"].handlers
        assert isinstance(handler, PackageHandler)
        assert handler.options == {"a": [1, "x"], "password": CANARY}
        assert CANARY not in mask(config) + repr(config)
        with pytest.raises(ConfigError, match="columns: is unknown: known are kind"):
            loaded(tmp_path, 'kind = "own"\ncolumns = ["a"]')
    finally:
        plugins.names.cache_clear()
