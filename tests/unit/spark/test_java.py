"""A Java is asked for its version; one that cannot run has none."""

from pathlib import Path

import pytest

from walstream.errors import ConfigError
from walstream.spark.java import LOWEST_VERSION, find_java, java_version, main


def test_what_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "java") == 0
    assert LOWEST_VERSION == 17


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ("no Java at all", 0),
    ],
)
def test_version_is_read_from_what_java_prints(
    tmp_path: Path, line: str, version: int
) -> None:
    assert java_version(_java(tmp_path, line)) == version


def test_java_home_comes_before_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = _java(tmp_path / "home", 'openjdk version "17.0.1"')
    on_path = _java(tmp_path / "path", 'openjdk version "21.0.1"')
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_java() == on_path
    monkeypatch.setenv("JAVA_HOME", str(home.parent.parent))
    assert find_java() == home


def test_old_java_home_gives_way_to_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = _java(tmp_path / "home", 'java version "1.8.0"')
    on_path = _java(tmp_path / "path", 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(home.parent.parent))
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_java() == on_path


def test_missing_java_is_one_line_with_the_command_that_installs_it() -> None:
    with pytest.raises(ConfigError) as caught:
        find_java()
    assert str(caught.value) == (
        "Java 17 or later is needed: apt-get install openjdk-17-jre-headless"
    )


def test_makefile_is_answered_with_that_line_and_a_failure() -> None:
    with pytest.raises(SystemExit, match=r"^Java 17 or later is needed: apt-get"):
        main()


def test_old_java_is_named_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = _java(tmp_path, 'openjdk version "11.0.2"')
    monkeypatch.setenv("PATH", str(java.parent))
    with pytest.raises(ConfigError, match=f"{java} is 11.*apt-get install"):
        find_java()


def _java(home: Path, line: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{line}' >&2\n")
    java.chmod(0o755)
    return java
