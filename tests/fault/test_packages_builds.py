"""Packages as files: the same bytes each time, what rpm reads, and their units."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.installing import ROOT, build, lacking

WHY = lacking("rpm", "dpkg-deb", "unshare", "systemd-analyze", "go", "envsubst")
pytestmark = [pytest.mark.fault_long, pytest.mark.skipif(bool(WHY), reason=WHY)]
UNITS = ROOT / "packaging" / "systemd"
MOST = 1.5  # of systemd's exposure, for what only streams


def rpm(*arguments: str | Path) -> str:
    command = ["rpm", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="session")
def rpms(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Make two releases of walstream."""
    found = {}
    for release in (1, 2):
        out = tmp_path_factory.mktemp("rpm")
        (found[release],) = build(out, "rpm", only="walstream", release=release)
    return found


def test_two_builds_are_the_same_bytes(tmp_path: Path) -> None:
    first, second = (
        build(tmp_path / name, "deb", "rpm", only="walstream", fresh=True)
        for name in ("a", "b")
    )
    assert [path.name for path in first] == [path.name for path in second]
    assert len(first) == 2
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_rpm_reads_owners_modes_needs_and_scripts(rpms: dict[int, Path]) -> None:
    listed = rpm("-qplv", rpms[1])
    files = {line.split()[-1]: line.split()[:4] for line in listed.splitlines()}
    configuration = files["/etc/walstream/walstream.toml"]
    assert configuration == ["-rw-r-----", "1", "root", "walstream"]
    assert "/etc/walstream/walstream.toml" in rpm("-qpc", rpms[1])
    needs = rpm("-qp", "--requires", rpms[1])
    assert re.search(r"^python\(abi\) = 3\.\d+$", needs, re.MULTILINE)
    scripts = rpm("-qp", "--scripts", rpms[1])
    assert "systemd-sysusers" in scripts
    assert "try-restart" in scripts
    # folders that belong to others are not claimed
    assert not {"/usr", "/usr/share", "/usr/share/man/man1", "/etc"} & files.keys()


def test_rpm_upgrades_keep_configuration_and_state(
    rpms: dict[int, Path], tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    # a root without a shell: scripts are tried with the deb, which has the same
    options = ["--root", str(root), "--nodeps", "--noscripts", "--nosignature"]
    rpm(*options, "-i", rpms[1])
    configuration = root / "etc/walstream/walstream.toml"
    assert configuration.stat().st_mode & 0o777 == 0o640
    configuration.write_text("# mine\n", "utf-8")
    state = root / "var/lib/walstream/app"
    state.mkdir(parents=True)
    rpm(*options, "-U", rpms[2])
    assert configuration.read_text("utf-8") == "# mine\n"
    assert state.exists()
    assert rpm("--root", str(root), "-q", "walstream").strip().endswith(("-2.x86_64",))
    rpm(*options, "-e", "walstream")
    assert not (root / "opt/walstream").exists()
    assert configuration.with_name("walstream.toml.rpmsave").read_text() == "# mine\n"
    assert state.exists()


@pytest.mark.parametrize("unit", ["walstream.service", "walstream@.service"])
def test_a_unit_exposes_little(unit: str, tmp_path: Path) -> None:
    copy = tmp_path / unit.replace("@", "@app")
    shutil.copyfile(UNITS / unit, copy)
    command = ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(copy)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", told)
    assert found is not None, told
    assert float(found[1]) <= MOST
