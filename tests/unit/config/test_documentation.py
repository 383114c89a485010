"""The shipped file and the document hold every key, with the model's defaults."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.project.reference import SECTIONS, model
from walstream.config import Config, load
from walstream.service.feature_support import unsupported

ROOT: Final = Path(__file__).parents[3]
SHIPPED: Final = ROOT / "walstream.toml"
DOCUMENT: Final = ROOT / "docs" / "configuration.md"
ENVIRONMENT: Final = {
    "WALSTREAM_DSN": "host=/run/postgresql",
    "WALSTREAM_LEGACY": "sqlite:///x",
    "WALSTREAM_MASK": "a secret of some length",
}
# The sections that are shown whole: where they stand, and their model.
COMPLETE: Final[dict[tuple[str | int, ...], str]] = {
    (): "Config",
    ("http",): "Http",
    ("spark",): "Spark",
    ("sources", "app"): "PostgresSource",
    ("sources", "legacy"): "SqlSource",
    ("sources", "legacy", "tables", "processes"): "PolledTable",
    ("sources", "upstream"): "KafkaSource",
    ("sinks", "kafka", "debezium"): "Debezium",
    ("sinks", "kafka", "messages"): "Messages",
    ("sinks", "kafka", "oauth"): "OAuth",
    ("sinks", "kafka", "registry"): "Registry",
    ("sinks", "kafka"): "KafkaSinkConfig",
    ("sinks", "kafka", "topics", "public.inventory"): "MappedTopic",
    ("sinks", "kafka", "handlers", 0): "DropColumnsHandler",
}


def uncommented() -> str:
    """Return the shipped file with its optional parts switched on."""
    return re.sub(r"(?m)^#: ", "", SHIPPED.read_text(encoding="utf-8"))


def test_the_shipped_file_loads_as_it_is() -> None:
    assert load(SHIPPED, ENVIRONMENT).sources.keys() == {"app"}


def test_the_shipped_file_loads_with_its_optional_parts(tmp_path: Path) -> None:
    path = tmp_path / "walstream.toml"
    path.write_text(uncommented(), encoding="utf-8")
    config: Config = load(path, ENVIRONMENT)
    assert config.sources.keys() == {"app", "legacy", "upstream"}


def test_the_fifteen_lines_in_readme_are_a_whole_configuration(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    (written,) = re.findall(r"(?ms)^```toml\n(.*?)^```$", text)
    assert len(written.splitlines()) == 15
    path = tmp_path / "walstream.toml"
    path.write_text(written, encoding="utf-8")
    config = load(path, ENVIRONMENT)
    assert config.sources.keys() == {"app"}
    assert not list(unsupported(config))


@pytest.mark.parametrize("place", COMPLETE)
def test_the_shipped_file_holds_every_key_with_its_default(
    place: tuple[str | int, ...],
) -> None:
    table: Any = tomllib.loads(uncommented())
    for step in place:
        table = table[step]
    fields = model()[COMPLETE[place]]
    assert table.keys() == fields.keys()
    for key, field in fields.items():
        is_example = field.get("default") is None or isinstance(
            table[key][0]
            if isinstance(table[key], list) and table[key]
            else table[key],
            dict,
        )
        assert is_example or table[key] == field["default"], key


def test_the_shipped_file_explains_every_key() -> None:
    explained = re.findall(r"(?m)^(\w+) = .*? # +\S", uncommented())
    written = re.findall(r"(?m)^(\w+) = ", uncommented())
    assert set(explained) == set(written)


def test_the_document_holds_every_key_default_and_sentence() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    parts = re.split(r"(?m)^## (.+)$", text)[1:]
    tables = dict(zip(parts[::2], parts[1::2], strict=True))
    assert tables.keys() == SECTIONS.keys()
    sections = model()
    for heading, name in SECTIONS.items():
        rows = re.findall(r"(?m)^\| `(\w+)` \| (.*?) \| (.+) \|$", tables[heading])
        expected = {
            (key, _default(field), field["description"])
            for key, field in sections[name].items()
        }
        assert set(rows) == expected, heading


@pytest.mark.parametrize("number", range(4))
def test_what_replaces_an_older_tool_is_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    pages = sorted((ROOT / "docs" / "migrating").glob("*.md"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    blocks = re.findall(r"(?ms)^```toml\n(.*?)^```$", text)
    assert len(blocks) == 4
    (tmp_path / "topics.json").write_text('{"t": {"name": "x"}}')
    (tmp_path / "walstream.toml").write_text(blocks[number], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert not list(unsupported(load(None, {})))


def test_every_section_is_documented() -> None:
    assert set(SECTIONS.values()) == model().keys()


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    if default is None or (isinstance(default, dict) and default):
        return ""  # demanded, or a section with a table of its own
    return f"`{json.dumps(default)}`"
