"""Manifests and chart are what the API takes, and walstream runs as they say."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.walstream import toml
from tests.support.servers.debian import ROOT
from tests.support.servers.pod import MANIFESTS, Pod
from walstream.config import load
from walstream.testing.servers.port import free_port

_GO = shutil.which("go", path=f"{os.environ['PATH']}:/usr/local/go/bin")
_CHECKS = ROOT / "tests" / "support" / "kubernetes"
_MOUNTED = "/run/secrets/"
_CHART = ROOT / "packaging" / "helm" / "walstream"


def accepted(text: str, folder: Path, environment: dict[str, str]) -> None:
    """Claim that walstream takes a configuration; its secrets are files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    dsn = (
        "host=db.example dbname=shop user=walstream password=123456 sslmode=verify-full"
    )
    for key in ("dsn", "password", "kafka-password", "http-token", "token"):
        content = dsn if key == "dsn" else "0123456789abcdef"
        for where in ("walstream", "postgres", "walstream-http"):
            (folder / where).mkdir(exist_ok=True)
            (folder / where / key).write_text(content, "utf-8")
    (folder / "kafka").mkdir(exist_ok=True)
    for key in ("ca.crt", "user.crt", "user.key"):
        (folder / "kafka" / key).touch()
        (folder / "postgres" / key).touch()
    (folder / "walstream" / "kafka-ca.crt").touch()
    file = folder / "walstream.toml"
    file.write_text(text.replace(_MOUNTED, f"{folder}/"), "utf-8")
    given = {
        name: value.replace(_MOUNTED, f"{folder}/")
        for name, value in environment.items()
    }
    config = load(file, given)
    assert str(config.state) == "/var/lib/walstream"
    assert config.http.probes == "0.0.0.0:8322"
    assert config.http.token in {"", "0123456789abcdef"}  # read from its file
    assert config.sources.keys() == {"app"}


def environment_of(stateful_set: str) -> dict[str, str]:
    found = yaml.safe_load(stateful_set)
    (container,) = found["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one["value"] for one in container["env"]}


def manifests_environment() -> dict[str, str]:
    return environment_of((MANIFESTS / "statefulset.yaml").read_text("utf-8"))


def test_the_configuration_of_the_manifests_is_accepted(tmp_path: Path) -> None:
    text = (MANIFESTS / "walstream.toml").read_text("utf-8")
    environment = manifests_environment()
    accepted(text, tmp_path, environment)
    for line in ("[http]", "listen =", "token ="):  # as with optional/metrics.yaml
        assert f"# {line}" in text
        text = text.replace(f"# {line}", line, 1)
    accepted(text, tmp_path, environment)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    tag = project["version"]
    kustomization = (MANIFESTS / "kustomization.yaml").read_text("utf-8")
    assert yaml.safe_load(kustomization)["images"][0]["newTag"] == tag
    assert f"newTag: {tag}-spark" in kustomization


def test_the_configurations_of_the_chart_are_accepted(tmp_path: Path) -> None:
    environment = manifests_environment()  # the chart's is the same
    files = [_CHART / "values.yaml", *sorted((_CHART / "ci").glob("*-values.yaml"))]
    texts = [yaml.safe_load(file.read_text("utf-8")).get("config") for file in files]
    given = [text for text in texts if text]
    assert len(given) == 2
    for text in given:
        accepted(text, tmp_path, environment)


@pytest.mark.fault_long
@pytest.mark.takes(300)  # to compile what decodes and renders, on two cores
@pytest.mark.skipif(_GO is None, reason="no go: https://go.dev/dl")
def test_the_api_takes_manifests_and_chart_strictly(tmp_path: Path) -> None:
    out = tmp_path / "rendered"
    out.mkdir()
    command = [str(_GO), "test", "-count=1", "./..."]
    environment = {
        **os.environ,
        "WALSTREAM_RENDERED": str(out),
        "GOFLAGS": "-mod=readonly",
    }
    done = subprocess.run(
        command,
        cwd=_CHECKS,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rendered = sorted(out.iterdir())
    assert len(rendered) == 6
    for path in rendered:
        objects = yaml.safe_load_all(path.read_text("utf-8"))
        kinds = {one["kind"]: one for one in objects if one}
        if "ConfigMap" in kinds:
            text = kinds["ConfigMap"]["data"]["walstream.toml"]
            environment = environment_of(yaml.safe_dump(kinds["StatefulSet"]))
            accepted(text, tmp_path / path.stem, environment)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sets a pod up")
def test_walstream_runs_as_the_pod_says(
    postgres18: PostgresServer, kafka: KafkaServer, tmp_path: Path, topic_prefix: str
) -> None:
    probes = f"127.0.0.1:{free_port()}"
    document = tomllib.loads((MANIFESTS / "walstream.toml").read_text("utf-8"))
    sink = document["sinks"]["kafka"]
    sink["producer"] = {"bootstrap.servers": kafka.bootstrap}
    sink["topic"] = topic_prefix + sink["topic"]
    with (
        temporary_database(postgres18) as database,
        Reader(kafka.bootstrap, topic_prefix) as reader,
    ):
        document["sources"]["app"]["slot"] = database.name
        document["http"] = {"listen": ""}
        database.execute(
            "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)"
        )
        secrets = {"dsn": database.dsn}
        overrides = {"WALSTREAM__HTTP__PROBES": probes}
        with Pod(tmp_path, toml(document), secrets, overrides) as pod:

            def ready() -> bool:
                assert pod.running, pod.text
                return asked(probes, "/ready")

            wait_until(ready, 60, "it is ready")
            database.execute("INSERT INTO t VALUES (2)")
            reader.count(2)
            assert asked(probes, "/health")
            assert "app" in pod.execute("status")  # finds the configuration by itself
            assert pod.stop() == 0, pod.text
        with pod:
            wait_until(ready, 60, "it is ready again")
            assert pod.stop() == 0, pod.text
        reader.count(2)  # the state stayed
        owners = {path.stat().st_uid for path in (pod.state / "app").iterdir()}
        assert owners == {10001}


def asked(address: str, path: str) -> bool:
    try:
        with urlopen(f"http://{address}{path}", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
