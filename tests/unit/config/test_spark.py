"""What is known of Spark before it starts."""

from pathlib import Path

import pytest

from walstream.config.spark import LOCAL, spark_defaults


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[*, 4]"])
def test_local_masters_are_this_machine(master: str) -> None:
    assert LOCAL.fullmatch(master)


@pytest.mark.parametrize(
    "master", ["local-cluster[2,1,1024]", "spark://localhost:7077", "yarn", "k8s://h"]
)
def test_all_others_listen_to_who_reaches_them(master: str) -> None:
    assert not LOCAL.fullmatch(master)


def test_spark_defaults_are_read_as_spark_reads_them(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# spark.app.name x\n\nother y\nspark.a  true \nspark.b=2g\nspark.c : d e\n"
    )
    found = spark_defaults({"SPARK_CONF_DIR": str(tmp_path), "SPARK_HOME": "/none"})
    assert found == {"spark.a": "true", "spark.b": "2g", "spark.c": "d e"}
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.x y")
    assert spark_defaults({"SPARK_HOME": str(tmp_path)}) == {"spark.x": "y"}


def test_without_a_file_there_are_none(tmp_path: Path) -> None:
    assert spark_defaults({}) == {}
    assert spark_defaults({"SPARK_HOME": str(tmp_path)}) == {}
