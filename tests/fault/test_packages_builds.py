"""Packages as files: the same bytes each time, what rpm reads, and their units."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.servers.debian import ROOT, build, copied, debian, lacking

WHY = lacking("rpm", "dpkg-deb", "unshare", "systemd-analyze", "go", "envsubst")
pytestmark = [
    pytest.mark.fault_long,
    pytest.mark.takes(600),
    pytest.mark.skipif(bool(WHY), reason=WHY),
]
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
    kinds = "deb", "rpm"
    names = "walstream walstream-consumer"  # Spark's is large, and nothing but a copy
    first = build(tmp_path / "a", *kinds, only=names, fresh=True)
    # wherever it is built
    (tmp_path / "elsewhere").mkdir()
    root = copied(tmp_path / "elsewhere")
    second = build(tmp_path / "b", *kinds, only=names, fresh=True, root=root)
    assert [path.name for path in first] == [path.name for path in second]
    assert len(first) == 4
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_rpm_reads_owners_modes_needs_and_scripts(rpms: dict[int, Path]) -> None:
    wanted = "[%{FILENAMES} %{FILEMODES:perms} %{FILEUSERNAME}:%{FILEGROUPNAME}\\n]"
    listed = rpm("-qp", "--queryformat", wanted, rpms[1])
    files = dict(line.split(" ", 1) for line in listed.splitlines())
    assert files["/etc/walstream/walstream.toml"] == "-rw-r----- root:walstream"
    assert files["/etc/walstream"] == "drwxr-x--- root:walstream"
    assert "/etc/walstream/walstream.toml" in rpm("-qpc", rpms[1])
    needs = rpm("-qp", "--requires", rpms[1])
    assert re.search(r"^python\(abi\) = 3\.\d+$", needs, re.MULTILINE)
    scripts = rpm("-qp", "--scripts", rpms[1])
    assert "systemd-sysusers" in scripts
    assert "try-restart" in scripts
    # folders that belong to others are not claimed
    assert not {"/usr", "/usr/share", "/usr/share/man/man1", "/etc"} & files.keys()


def test_rpm_installs_upgrades_and_erases(
    rpms: dict[int, Path], tmp_path: Path
) -> None:
    """In a clean Debian: its packages are unknown to rpm, all else is real."""
    system = debian(tmp_path / "root")
    root = ["--root", str(system.folder), "--dbpath", "/var/lib/rpm"]
    options = [*root, "--nodeps", "--nosignature"]
    rpm(*options, "-i", rpms[1])
    configuration, state = "/etc/walstream/walstream.toml", "/var/lib/walstream"
    before = {
        configuration: "-rw-r----- root:walstream",
        state: "drwx------ walstream:walstream",
    }
    assert system.facts(configuration, state) == before
    assert "(compiled)" in system.run("walstream", "--version").stdout
    system.path(configuration).write_text("# mine\n", "utf-8")
    (system.path(state) / "app").mkdir()
    rpm(*options, "-U", rpms[2])
    assert rpm(*root, "-q", "walstream").strip() == rpms[2].stem
    assert "(compiled)" in system.run("walstream", "--version").stdout
    assert system.path(configuration).read_text("utf-8") == "# mine\n"
    assert system.facts(configuration, state) == before
    rpm(*options, "-e", "walstream")
    assert not system.path("/opt/walstream").exists()
    assert system.path(f"{configuration}.rpmsave").read_text("utf-8") == "# mine\n"
    assert (system.path(state) / "app").exists()
    shutil.rmtree(system.folder)


def test_rpm_gives_the_consumer_library_to_the_systems_python(tmp_path: Path) -> None:
    (package,) = build(tmp_path / "made", "rpm", only="walstream-consumer")
    system = debian(tmp_path / "root")
    root = ["--root", str(system.folder), "--dbpath", "/var/lib/rpm"]
    rpm(*root, "--nodeps", "--nosignature", "-i", package)
    needs = rpm("-qp", "--requires", package)
    (minor,) = re.findall(r"^python\(abi\) = (3\.\d+)$", needs, re.MULTILINE)
    # the folder that Fedora's Python has, and Debian's does not look at
    code = (
        f"import site; site.addsitedir('/usr/lib/python{minor}/site-packages')\n"
        "import sys, walstream_consumer as w, consumer as c\n"
        "print(w is c, sys.path[-1])"
    )
    found = system.run("python3", "-c", code)
    assert found.stdout == "True /usr/lib/walstream-consumer\n", found.stderr
    rpm(*root, "-e", "walstream-consumer")
    assert not system.path("/usr/lib/walstream-consumer").exists()
    shutil.rmtree(system.folder)


@pytest.mark.parametrize("unit", ["walstream.service", "walstream@.service"])
def test_a_unit_exposes_little(unit: str, tmp_path: Path) -> None:
    copy = tmp_path / unit.replace("@", "@app")
    shutil.copyfile(UNITS / unit, copy)
    command = ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(copy)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", told)
    assert found is not None, told
    assert float(found[1]) <= MOST
