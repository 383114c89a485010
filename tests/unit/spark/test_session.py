"""What Spark is started with, and what is refused before."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from walstream.errors import ConfigError
from walstream.spark import session
from walstream.spark.session import Settings, properties, slots, submit_line


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


def java(folder: Path, version: str) -> dict[str, str]:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(folder)}


def test_java_is_looked_for_where_spark_looks(tmp_path: Path) -> None:
    new, old = java(tmp_path / "new", "17.0.1"), java(tmp_path / "old", "11.0.2")
    on_path = {"PATH": f"{tmp_path}/new/bin"}
    session.check_java(new)
    session.check_java(on_path)
    for environment, words in (
        (old | on_path, "bin/java is 11"),  # JAVA_HOME decides alone
        ({"PATH": "/nonexistent"}, "there is none"),
        ({"JAVA_HOME": "/nonexistent"}, "is no Java"),
    ):
        with pytest.raises(ConfigError) as error:
            session.check_java(environment)
        said = str(error.value.args[0])
        assert said.startswith("Spark needs Java 17 or later, and ")
        assert words in said
        assert "apt-get install openjdk-17" in error.value.hint
        assert error.value.repair.then == error.value.hint
        assert "\n" not in said
        assert error.value.exit_code == 2


def test_what_java_says_ends_with_the_cause(tmp_path: Path) -> None:
    said = tmp_path / "said"
    said.write_text(
        'Exception in thread "main" java.lang.ExceptionInInitializerError\n'
        "\tat org.apache.spark.Something\n"
        "Caused by: java.lang.Other\n"
        "Caused by: java.net.UnknownHostException: db1: Name or service not known\n"
    )
    with said.open("rb") as lines:
        assert session._last(lines) == (  # noqa: SLF001 - its words
            "java.lang.ExceptionInInitializerError / Caused by:"
            " java.net.UnknownHostException: db1: Name or service not known"
        )


def test_pyspark_is_looked_for_and_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    session.check_pyspark()
    monkeypatch.setattr(session, "find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"pip install 'walstream\[spark\]'"):
        session.check_pyspark()
    monkeypatch.setattr(sys, "prefix", "/opt/walstream")
    with pytest.raises(ConfigError, match="install the package walstream-spark"):
        session.check_pyspark()


@pytest.mark.parametrize(
    ("master", "tasks"),
    [
        ("local", 1),
        ("local[2]", 2),
        ("local[3,4]", 3),
        ("local[3, 4]", 3),
        ("local-cluster[2,1,1024]", None),
        ("spark://host:7077", None),
        ("yarn", None),
    ],
)
def test_slots_are_known_of_local_masters(master: str, tasks: int | None) -> None:
    assert slots(master) == tasks


def test_what_is_configured_wins_and_speculation_stays_off() -> None:
    given = properties(Settings("local[2,4]", {"spark.driver.memory": "3g"}))
    assert given["spark.driver.memory"] == "3g"
    assert given["spark.master"] == "local[2,4]"
    assert given["spark.ui.enabled"] == given["spark.speculation"] == "false"
    assert given["spark.driver.bindAddress"] == "127.0.0.1"
    on_cluster = properties(Settings("spark://host:7077"))
    assert "spark.driver.bindAddress" not in on_cluster
    assert on_cluster["spark.network.crypto.saslFallback"] == "false"


def test_spark_defaults_win_over_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "# spark.app.name x\nspark.ui.enabled  true\nspark.driver.memory=2g\n"
    )
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    given = properties(Settings())
    assert given.keys().isdisjoint({"spark.ui.enabled", "spark.driver.memory"})
    assert given["spark.app.name"] == "walstream"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(conf={"spark.speculation": "True"}), "rows twice"),
        (Settings("sc://host"), "Spark Connect"),
    ],
)
def test_what_chunks_cannot_run_under_is_refused(
    settings: Settings, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        session.check(settings)


def test_spark_hides_what_walstream_calls_a_secret() -> None:
    shown = re.compile(properties(Settings())["spark.redaction.regex"])
    for key in ("spark.hadoop.fs.azure.account.key.me", "spark.ssl.keyPassword"):
        assert shown.search(key)
    assert not shown.search("spark.master")


def test_the_line_of_spark_submit_is_runnable_and_masks_secrets() -> None:
    line = submit_line(
        properties(
            Settings(
                "spark://h:1", {"spark.x": "a b$c", "spark.authenticate.secret": "s3"}
            )
        )
    )
    words = shlex.split(line)
    assert words[:3] == ["spark-submit", "--master", "spark://h:1"]
    assert "spark.x=a b$c" in words
    assert "s3" not in line
    assert "spark.authenticate.secret=***" in words
