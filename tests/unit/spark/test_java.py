"""A Java is asked for its version; one that cannot run has none."""

from pathlib import Path

from walstream.spark.java import LOWEST_VERSION, java_version


def test_what_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "java") == 0
    assert LOWEST_VERSION == 17
