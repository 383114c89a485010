"""The container's files agree with the packages, and with walstream's own rules."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from docker.utils.build import exclude_paths

from tests.support.servers.debian import ROOT
from walstream.config import load
from walstream.config.quantity import duration
from walstream.errors import ConfigError

FOLDER: Final = ROOT / "packaging/container"
SECRETS: Final = "/run/secrets/walstream"
IMAGE: Final = (FOLDER / "Dockerfile").read_text("utf-8")
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
VERSION: Final = PROJECT["project"]["version"]


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    text = (FOLDER / "compose.yaml").read_text("utf-8")
    found: dict[str, Any] = yaml.safe_load(text)["services"]
    return found


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    """Copy that of compose.yaml, with secrets as its volume has them."""
    for name in ("walstream", "token"):
        (tmp_path / name).write_text("a-secret-of-this-test\n", "utf-8")
    text = (FOLDER / "walstream.toml").read_text("utf-8")
    assert SECRETS in text
    copy = tmp_path / "walstream.toml"
    copy.write_text(text.replace(SECRETS, str(tmp_path)), "utf-8")
    return copy


def test_the_first_days_configuration_is_accepted(
    configuration: Path, services: dict[str, Any]
) -> None:
    config = load(configuration)
    assert str(config.state) in mounted(services["walstream"])
    port = config.http.listen.rpartition(":")[2]
    assert [one.rpartition(":")[2] for one in services["walstream"]["ports"]] == [port]
    grace = services["walstream"]["stop_grace_period"]
    assert duration(grace) > config.shutdown_timeout


@pytest.mark.parametrize("part", ["source", "sink"])
def test_it_is_insecure_in_words_alone(configuration: Path, part: str) -> None:
    text = configuration.read_text("utf-8")
    start, _, end = text.partition("[sinks.kafka]")
    if part == "source":
        start = start.replace("insecure = true", "")
    else:
        end = end.replace("insecure = true", "")
    configuration.write_text(f"{start}[sinks.kafka]{end}", "utf-8")
    with pytest.raises(ConfigError, match="is not this machine"):
        load(configuration)


def mounted(service: dict[str, Any]) -> set[str]:
    return {one.split(":")[1] for one in service["volumes"]}


def test_what_is_mounted_is_there(services: dict[str, Any]) -> None:
    sources = [
        one.split(":")[0]
        for service in services.values()
        for one in service["volumes"]
        if one.startswith(".")
    ]
    assert len(sources) > 4
    assert [one for one in sources if not (FOLDER / one).is_file()] == []


def test_only_this_machine_reaches_what_is_published(services: dict[str, Any]) -> None:
    published = [
        one for service in services.values() for one in service.get("ports", ())
    ]
    assert published
    assert all(one.startswith("127.0.0.1:") for one in published)


def test_passwords_stand_in_files_alone(services: dict[str, Any]) -> None:
    for service in services.values():
        for name, value in service.get("environment", {}).items():
            assert "PASSWORD" not in name or value.startswith(SECRETS), name
    sql = (FOLDER / "database.sql").read_text("utf-8")
    assert re.findall(r"PASSWORD ([^\s;]+)", sql) == [":'shop'", ":'walstream'"]
    dsn = load_text("walstream.toml")["sources"]["shop"]["dsn"]
    assert re.findall(r"password=(\S+)", dsn) == [f"${{file:{SECRETS}/walstream}}"]
    assert load_text("walstream.toml")["http"]["token"] == f"${{file:{SECRETS}/token}}"


def load_text(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / name).read_text("utf-8"))


@pytest.mark.parametrize("name", ["walstream", "tail"])
def test_walstream_runs_with_the_least(services: dict[str, Any], name: str) -> None:
    service = services[name]
    assert service["image"] == f"walstream:{VERSION}"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "user" not in service  # the image's


def test_a_build_has_the_version_and_the_base_of_its_script() -> None:
    assert argument("VERSION") == VERSION
    script = (FOLDER / "base.sh").read_text("utf-8")
    suite = re.search(r"^SUITE=\$\{SUITE:-(\w+)\}$", script, re.MULTILINE)
    assert suite is not None
    assert argument("BASE") == f"debian:{suite[1]}-slim"


def argument(name: str) -> str:
    found = re.search(rf"^ARG {name}=(\S*)$", IMAGE, re.MULTILINE)
    assert found is not None, name
    return found[1]


def test_paths_are_those_of_the_packages() -> None:
    package = yaml.safe_load((ROOT / "packaging/walstream.yaml").read_text("utf-8"))
    by_place = {one["dst"]: one for one in package["contents"]}
    command = by_place["/usr/bin/walstream"]["src"]
    assert f"ln -s {command} /usr/bin/walstream" in IMAGE
    assert "/etc/walstream/walstream.toml" in by_place
    for place in ("/opt/walstream", "/etc/walstream", "/usr/share/doc/walstream"):
        assert re.search(
            rf"^COPY --from=build \S*{place} {place}$", IMAGE, re.MULTILINE
        )
    unit = (ROOT / "packaging/systemd/walstream.service").read_text("utf-8")
    assert "WorkingDirectory=/var/lib/walstream" in unit
    assert "\nVOLUME /var/lib/walstream\n" in IMAGE
    assert "WALSTREAM__STATE=/var/lib/walstream" in IMAGE
    spark = yaml.safe_load((ROOT / "packaging/walstream-spark.yaml").read_text("utf-8"))
    (place,) = {one["dst"] for one in spark["contents"]} & {"/opt/walstream-spark"}
    assert f"COPY --from=build-spark {place} {place}" in IMAGE


def test_the_user_is_a_number_and_never_root_at_the_end() -> None:
    stages = re.split(r"^FROM ", IMAGE, flags=re.MULTILINE)[1:]
    users = [re.findall(r"^USER (\S+)$", stage, re.MULTILINE) for stage in stages]
    last = [found[-1] for found in users if found]
    assert last == ["10001:10001"] * 2
    secrets = (FOLDER / "secrets.sh").read_text("utf-8")
    assert f"chown {last[0].split(':')[0]}:" in secrets  # walstream may read them


def test_nothing_in_it_is_bound_to_one_index_or_host() -> None:
    for name in ("Dockerfile", "build.sh", "compose.yaml"):
        text = (FOLDER / name).read_text("utf-8")
        assert "://" not in re.sub(
            r"(PLAINTEXT|CONTROLLER)://|http://localhost", "", text
        )
    assert "# syntax=" not in IMAGE  # a frontend that a registry would have to bring


def test_the_context_holds_sources_and_no_secret(tmp_path: Path) -> None:
    """By docker's own reading of .dockerignore."""
    left_out = (
        ".git/config", ".env", ".venv/bin/python", "secrets/password", "state/data.mdb",
        "walstream/.env", "walstream/__pycache__/op.pyc", "walstream/op.so",
        "packaging/.env.local", "packaging/container/compose.yaml", "dist/a.whl",
        "build/x", "tests/conftest.py", "my.toml", "id_rsa", "key.pem",
    )  # fmt: skip
    needed = (
        "walstream/cli/main.py", "consumer/op.py", "packaging/build.sh",
        "pyproject.toml", "packaging/requirements.lock",
        "README.md", "LICENSE", "walstream.toml",
    )  # fmt: skip
    for name in (*left_out, *needed):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    sent = set(exclude_paths(str(tmp_path), patterns))
    assert not sent & set(left_out)
    assert set(needed) <= sent


def test_what_the_packages_script_copies_is_in_the_context() -> None:
    script = (ROOT / "packaging/build.sh").read_text("utf-8")
    found = re.search(r'cp -r --parents (walstream [^"]*)"\$WORK/source"', script)
    assert found is not None
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert {
        f"!{name.split('/')[0]}" for name in shlex.split(found[1]) if name.strip()
    } <= set(lines)
