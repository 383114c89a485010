"""What is remembered of Kafka's jars, when it is void, and what is not run."""

import re
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from walstream.errors import ConfigError
from walstream.testing.servers.jars import (
    VERSION,
    kafka_class_path,
    known,
    recall,
    remember,
    verify,
)


def test_remembered_jars_are_used_without_asking_anyone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = [_jar(tmp_path / "a.jar"), _jar(tmp_path / "b.jar")]
    hashes = {jar.name: sha256(jar.read_bytes()).hexdigest() for jar in jars}
    monkeypatch.setattr("walstream.testing.servers.jars.known", lambda: hashes)
    memory = tmp_path / "cache" / "jars"
    remember(memory, jars)
    assert kafka_class_path(memory) == jars


def test_a_jar_that_is_not_the_published_one_is_not_run(tmp_path: Path) -> None:
    name = f"kafka-clients-{VERSION}.jar"
    assert name in known()
    memory = tmp_path / "jars"
    remember(memory, [_jar(tmp_path / name)])
    with pytest.raises(ConfigError, match=f"{name} is not the file published") as told:
        kafka_class_path(memory)
    assert known()[name] in str(told.value)
    assert f"rm '{tmp_path / name}'" in str(told.value)


def test_a_jar_that_nobody_knows_is_not_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="walstream knows none of it"):
        verify([_jar(tmp_path / "another.jar")], known())


def test_every_hash_is_one() -> None:
    assert len(known()) > 40
    assert all(re.fullmatch("[0-9a-f]{64}", one) for one in known().values())
    assert all(name.endswith(".jar") for name in known())


def test_memory_is_void_once_a_jar_is_gone(tmp_path: Path) -> None:
    jars = [_jar(tmp_path / "a.jar"), _jar(tmp_path / "b.jar")]
    remember(tmp_path / "jars", jars)
    jars[1].unlink()
    assert recall(tmp_path / "jars") == []


def test_memory_is_void_once_a_jar_is_cut_short(tmp_path: Path) -> None:
    jar = _jar(tmp_path / "a.jar")
    remember(tmp_path / "jars", [jar])
    jar.write_bytes(jar.read_bytes()[:-30])
    assert recall(tmp_path / "jars") == []


def test_nothing_is_recalled_where_nothing_was_remembered(tmp_path: Path) -> None:
    assert recall(tmp_path / "jars") == []


def _jar(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    return path
