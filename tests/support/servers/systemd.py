"""systemd as the first process of a system in a folder, with processes of its own.

with booted(system) as machine:
    machine.systemctl("start", "walstream")
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from tests.support.deadline import wait_until
from tests.support.servers.debian import System

# no chroot: in one the kernel allows no user namespace, which PrivateUsers= needs
_BOOT: Final = """
set -e
mount --make-rprivate /
mount --bind "$0" "$0"
cd "$0"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/shm dev/pts .before
mount -t tmpfs tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
pivot_root . .before
exec env -i container=test sh -c '
  umount -l /.before
  mount --make-rshared /  # systemd leaves that to who starts a container
  exec /lib/systemd/systemd --show-status=no'
"""
_INIT: Final = "/lib/systemd/systemd"
_CGROUPS: Final = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
_BOOTS_S: Final = 60.0


@dataclass(frozen=True)
class Machine(System):
    """A system that runs; `command` joins it."""

    init: int  # its first process, as it is numbered outside

    def command(self, *command: str, sandboxed: bool = False) -> list[str]:
        assert not sandboxed, "that is for systemd to do"
        spaces = ["--mount", "--pid", "--ipc", "--uts", "--root", "--wd"]
        return ["nsenter", "--target", str(self.init), *spaces, *command]

    def systemctl(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self.run("systemctl", "--no-pager", *words)

    def shown(self, unit: str, name: str) -> str:
        """Give a property of a unit."""
        return self.systemctl("show", "-P", name, unit).stdout.strip()

    def process(self, unit: str) -> psutil.Process:
        """Find a unit's main process, as it is numbered outside."""
        inside = self.shown(unit, "MainPID")
        for one in psutil.Process(self.init).children(recursive=True):
            if status_of(one)["NSpid"].split()[-1] == inside:
                return one
        raise AssertionError(f"{unit} has no process: {self.log(unit)}")

    def log(self, unit: str) -> str:
        return self.run("journalctl", "--no-pager", "-u", unit).stdout


def status_of(process: psutil.Process) -> dict[str, str]:
    """Give what the kernel tells of a process."""
    text = Path(f"/proc/{process.pid}/status").read_text("utf-8")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


@contextmanager
def booted(system: System) -> Iterator[Machine]:
    """Start it; all its processes end with the block."""
    root = next(one for one in _CGROUPS if (one / "cgroup.procs").exists())
    group = root / f"walstream-test-{os.getpid()}"
    group.mkdir(exist_ok=True)
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts"]
    join = f'echo $$ >{group}/cgroup.procs && exec "$@"'
    process = subprocess.Popen(
        ["sh", "-c", join, "sh", *enter, "--cgroup", "sh", "-c", _BOOT, system.folder]
    )
    try:
        machine = Machine(system.folder, _init(process))

        def runs() -> bool:
            said = machine.systemctl("is-system-running").stdout.strip()
            return said in {"running", "degraded"}

        wait_until(runs, _BOOTS_S, "it runs")
        yield machine
    finally:
        process.kill()
        process.wait()
        _remove(group)


def _init(process: "subprocess.Popen[bytes]") -> int:
    """Wait until its first process is systemd."""
    found: list[int] = []

    def look() -> bool:
        below = psutil.Process(process.pid).children()
        found[:] = [one.pid for one in below if one.cmdline()[:1] == [_INIT]]
        return bool(found)

    wait_until(look, _BOOTS_S, "systemd is the first process")
    return found[0]


def _remove(group: Path) -> None:
    """Take away the groups that systemd made, when their processes are gone."""
    events = group / "cgroup.events"
    wait_until(lambda: "populated 0" in events.read_text(), _BOOTS_S, "all has ended")
    for folder, _, _ in os.walk(group, topdown=False):
        Path(folder).rmdir()
