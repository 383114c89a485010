"""What is remembered of Kafka's jars, and when it is void."""

import zipfile
from pathlib import Path

from walstream.local.jars import kafka_class_path, recall, remember


def test_remembered_jars_are_used_without_asking_anyone(tmp_path: Path) -> None:
    jars = [_jar(tmp_path / "a.jar"), _jar(tmp_path / "b.jar")]
    memory = tmp_path / "cache" / "jars"
    remember(memory, jars)
    assert kafka_class_path(memory) == jars


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
