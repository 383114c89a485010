"""A pod of packaging/kubernetes without a cluster.

It has what kubelet and runtime set up: a root that cannot be written, the pod's user
without a capability, ConfigMap and Secret as the kubelet lays them out, and a volume
that fsGroup made writable. No seccomp profile, and no image: this checkout's code.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from tests.support.servers.debian import ROOT

MANIFESTS: Final = ROOT / "packaging" / "kubernetes"
_COPIED: Final = ("hosts", "nsswitch.conf", "ld.so.cache", "ld.so.conf", "passwd")
_DATA: Final = "..2026_01_01_00_00_00.123456789"
_SETUP: Final = r"""
set -e
root=$1 uid=$2 gid=$3
shift 3
mount --bind "$root" "$root"
cd "$root"
for one in usr lib lib64 bin sbin $WALSTREAM_BOUND; do
  one=${one#/}
  [ -d "/$one" ] || continue
  [ -L "/$one" ] && { cp -P "/$one" "$one"; continue; }
  mkdir -p "$one"
  mount --rbind "/$one" "$one"
done
mkdir -p proc dev
mount --rbind /proc proc
mount --rbind /dev dev
for one in $WALSTREAM_WRITTEN; do mount --rbind "$one" "$one"; done
mount -o remount,bind,ro "$root"
unset WALSTREAM_BOUND WALSTREAM_WRITTEN
exec chroot . setpriv --reuid "$uid" --regid "$gid" --groups "$gid" --no-new-privs \
  --bounding-set=-all --inh-caps=-all -- "$@"
"""


def stateful_set() -> dict[str, Any]:
    text = (MANIFESTS / "statefulset.yaml").read_text("utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


class Pod:
    """Runs what the StatefulSet runs, in a folder that becomes its root."""

    def __init__(
        self,
        folder: Path,
        configuration: str,
        secrets: Mapping[str, str],
        environment: Mapping[str, str],
    ) -> None:
        """Lay everything out; `environment` takes precedence over the manifest's."""
        spec = stateful_set()["spec"]["template"]["spec"]
        (self._container,) = spec["containers"]
        self._user = spec["securityContext"]
        self._root = folder / "root"
        (self._root / "etc").mkdir(parents=True)
        self._root.chmod(0o755)
        for name in _COPIED:
            if (path := Path("/etc", name)).is_file():
                shutil.copy(path, self._root / "etc" / name)
        places = {
            one["name"]: self._root / one["mountPath"].lstrip("/")
            for one in self._container["volumeMounts"]
        }
        self._lay(places["configuration"], {"walstream.toml": configuration}, 0o644)
        self._lay(places["secrets"], secrets, 0o440)
        self.state = places["state"]
        self._claim(self.state)
        (self.state / "lost+found").mkdir(mode=0o700)  # of a new file system
        self._claim(places["tmp"])
        places["tmp"].chmod(0o1777)
        self._written = [self.state, places["tmp"]]
        given = {one["name"]: one["value"] for one in self._container["env"]}
        self._environment = {**given, **environment}
        self._log = folder / "pod.log"
        self._process: subprocess.Popen[bytes] | None = None

    def _lay(self, place: Path, files: Mapping[str, str], mode: int) -> None:
        """Write files as the kubelet does: links to links, in a folder for everyone."""
        (place / _DATA).mkdir(parents=True)
        place.chmod(0o777)
        (place / "..data").symlink_to(_DATA)
        for name, text in files.items():
            path = place / _DATA / name
            path.write_text(text, "utf-8")
            os.chown(path, 0, self._user["fsGroup"])
            path.chmod(mode)
            (place / name).symlink_to(f"..data/{name}")

    def _claim(self, place: Path) -> None:
        """Give a volume to the pod's group, as fsGroup does."""
        place.mkdir(parents=True)
        os.chown(place, 0, self._user["fsGroup"])
        place.chmod(0o2775)

    def _command(self, *arguments: str) -> tuple[list[str], dict[str, str]]:
        bound = {ROOT, Path(sys.prefix), Path(sys.base_prefix)}
        outer = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "WALSTREAM_BOUND": " ".join(map(str, bound)),
            "WALSTREAM_WRITTEN": " ".join(map(str, self._written)),
            **self._environment,
        }
        script = Path(sys.executable).with_name("walstream")
        user, group = str(self._user["runAsUser"]), str(self._user["runAsGroup"])
        setup = ["bash", "-c", _SETUP, "pod", str(self._root), user, group]
        return ["unshare", "--mount", *setup, str(script), *arguments], outer

    def start(self) -> Self:
        command, environment = self._command(*self._container["args"])
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        return self

    def execute(self, *arguments: str) -> str:
        """Run a command of walstream in it, as `kubectl exec` does."""
        command, environment = self._command(*arguments)
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def text(self) -> str:
        """All that it logged."""
        return self._log.read_text("utf-8", errors="replace")

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> int:
        """SIGTERM, and as long as the grace period; give the exit code."""
        assert self._process is not None
        self._process.terminate()
        spec = stateful_set()["spec"]["template"]["spec"]
        return self._process.wait(spec["terminationGracePeriodSeconds"])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.running and self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
