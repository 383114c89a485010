"""The documentation as a site builds without a broken link, and needs no network."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.project.site import build

_ASSET = re.compile(
    r"<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//"
    r"[^\"'\s>]+"
)
_IMPORT = re.compile(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^\"')\s]+")
_QUESTIONS = (
    "Add a table",
    "slot was lost",
    "Avro",
    "high availability",
    "See the lag",
    "filling the disk",
    "failover",
    "Mask a column",
    "personal data",
    "Go back two hours",
    "Change the key",
    "another Kafka",
    "Upgrade",
    "Remove walstream",
    "delete",
    "Debezium",
    "DDL",
    "Plan memory",
    "Kubernetes",
    "Docker",
    "managed PostgreSQL",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site"))


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 100  # the decisions, too
    assert not {found for page in pages for found in _ASSET.findall(_text(page))}
    styles = [*site.rglob("*.css")]
    assert styles
    assert not {found for style in styles for found in _IMPORT.findall(_text(style))}


def test_the_search_finds_each_question_of_a_first_day(site: Path) -> None:
    titles = [title for title, address in _indexed(site) if "how-do-i" in address]
    for question in _QUESTIONS:
        assert any(question in title for title in titles), question


def test_what_pages_link_to_is_on_the_site(site: Path) -> None:
    for name in (
        "docs/examples/basic.py",
        "docs/demo.svg",
        "walstream.toml",
        "packaging/grafana/walstream.json",
    ):
        assert (site / name).is_file(), name


def _indexed(site: Path) -> Iterator[tuple[str, str]]:
    for item in json.loads(_text(site / "search.json"))["items"]:
        yield item["title"], item["location"]


def _text(path: Path) -> str:
    return path.read_text("utf-8")
