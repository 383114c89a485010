"""Packages, made and installed into a clean system: Debian in a folder.

What runs in there sees its files alone, its own processes, and this machine's network.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
EPOCH: Final = "1700000000"
_SOURCES: Final = (
    *("walstream", "consumer", "packaging", "docs", "pyproject.toml", "README.md"),
    *("LICENSE", "CHANGELOG.md", "walstream.toml"),
)
_SUITE: Final = "bookworm"
_MIRROR: Final = "http://deb.debian.org/debian"
# everything mounted is gone with the last process
_ENTER: Final = """
set -e
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
"""
_SANDBOX: Final = """
mount --bind "$0" "$0"
mount --bind "$0/var/lib/walstream" "$0/var/lib/walstream"
mount -o remount,bind,ro,nosuid "$0"
mount -t tmpfs -o mode=1777 tmpfs "$0/tmp"
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
"""
_UNPRIVILEGED: Final = (
    *("setpriv", "--reuid=walstream", "--regid=walstream", "--clear-groups"),
    *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"),
)


def copied(folder: Path) -> Path:
    """Copy what packages are made of, with tools and wheels."""
    for name in _SOURCES:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copyfile
        copy(source, folder / name)
    return lent(folder)


def lent(folder: Path) -> Path:
    """Give other sources the tools and wheels made here; they make what differs."""
    work, made = folder / "build/package", ROOT / "build/package"
    work.mkdir(parents=True)
    shutil.copytree(made / "wheels", work / "wheels")
    (work / "tools").symlink_to(made / "tools")
    return folder


def build(
    out: Path,
    *kinds: str,
    only: str = "",
    release: int = 1,
    fresh: bool = False,
    root: Path = ROOT,
) -> list[Path]:
    """Make packages; the one `only`, or all; `fresh`: compiled again in any case."""
    environment = {
        **os.environ,
        "OUT": str(out),
        "RELEASE": str(release),
        "SOURCE_DATE_EPOCH": EPOCH,
        "ONLY": only,
        "FRESH": "1" if fresh else "",
    }
    script = root / "packaging" / "build.sh"
    subprocess.run([script, *kinds], env=environment, check=True)
    return sorted(out.iterdir())


def lacking(*tools: str) -> str:
    """Say why packages cannot be tried here, or ""."""
    if os.geteuid() != 0:
        return "not root: systems in folders need it"
    path = f"{os.environ['PATH']}:/usr/sbin:/usr/local/go/bin"
    absent = [tool for tool in tools if not shutil.which(tool, path=path)]
    return f"apt-get install {' '.join(absent)}" if absent else ""


def debian(folder: Path) -> "System":
    """Make a clean one; what was fetched once is kept in build/."""
    kept = ROOT / "build" / f"{_SUITE}-python3.tar"
    folder.mkdir()
    if kept.exists():
        subprocess.run(["tar", "-C", folder, "-xpf", kept], check=True)
        return System(folder)
    bootstrap = ["debootstrap", "--variant=minbase", "--include=python3,systemd"]
    subprocess.run([*bootstrap, _SUITE, folder, _MIRROR], check=True)
    kept.parent.mkdir(exist_ok=True)
    new = kept.with_suffix(f".{os.getpid()}")
    subprocess.run(["tar", "-C", folder, "-cf", new, "."], check=True)
    new.replace(kept)
    return System(folder)


@dataclass(frozen=True)
class System:
    """A system in a folder."""

    folder: Path

    def command(self, *command: str, sandboxed: bool = False) -> list[str]:
        """Give the command line that runs one inside."""
        script = "set -e" + _SANDBOX if sandboxed else _ENTER
        inside = [*_UNPRIVILEGED, *command] if sandboxed else list(command)
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--ipc"]
        chroot = 'exec chroot "$0" "$@"'
        return [*enter, "sh", "-c", script + chroot, str(self.folder), *inside]

    def run(
        self, *command: str, environment: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run to its end; what it says and its exit code are the test's business."""
        return subprocess.run(
            self.command(*command),
            env={**_ENVIRONMENT, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )

    def install(self, package: Path) -> str:
        """Install a deb, without what is only recommended."""
        shutil.copyfile(package, self.folder / "root" / package.name)
        done = self.run("dpkg", "-i", f"/root/{package.name}")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def facts(self, *paths: str) -> dict[str, str]:
        """Tell kind, mode and owners of each: `-rw-r----- root:walstream`."""
        told = self.run("stat", "-c", "%n %A %U:%G", *paths)
        assert told.returncode == 0, told.stderr
        lines = (line.split(" ", 1) for line in told.stdout.splitlines())
        return {name: facts for name, facts in lines}  # noqa: C416 - typed so

    def path(self, inside: str) -> Path:
        return self.folder / inside.lstrip("/")


_ENVIRONMENT: Final = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
}
