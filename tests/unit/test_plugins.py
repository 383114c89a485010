"""What an installed package adds is found by its name, and blamed by it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.programs.plugin_package import install
from walstream import plugins
from walstream.errors import ConfigError

GROUP = "walstream.tests"


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Let nothing that a test installs be remembered."""
    plugins.names.cache_clear()
    plugins.load.cache_clear()
    yield
    plugins.names.cache_clear()
    plugins.load.cache_clear()


def add(folder: Path, patch: pytest.MonkeyPatch, entry: str, text: str) -> None:
    patch.syspath_prepend(install(folder, GROUP, entry, text))


def test_what_a_package_adds_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plugins.names(GROUP) == ()
    plugins.names.cache_clear()
    add(tmp_path, monkeypatch, "more = found_extension:Thing", "Thing = 7\n")
    assert plugins.names(GROUP) == ("more",)
    assert plugins.load(GROUP, "more") == 7


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(
        ConfigError, match=r"adds 'more' to the group 'walstream\.tests'"
    ):
        plugins.load(GROUP, "more")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "AttributeError"),
        ("import no_such_module_at_all\n", "ModuleNotFoundError: No module named"),
        ("raise ValueError('of its own')\n", "ValueError: of its own"),
    ],
)
def test_what_cannot_be_imported_is_named_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    module = f"broken_extension_{len(text)}"
    add(tmp_path, monkeypatch, f"bad = {module}:Thing", text)
    with pytest.raises(ConfigError, match=f"cannot be imported from .*{said}"):
        plugins.load(GROUP, "bad")
