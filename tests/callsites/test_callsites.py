"""Strikes at call sites: a few of them, and that shim, plan and checks can be trusted."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.callsites import trace
from tests.callsites.scenario import Servers, own_group, staged
from tests.callsites.shim import Tap
from tests.callsites.streams import FirstStart
from tests.support.programs.walstream import Walstream


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with Servers() as made:
        yield made


class _Traced(FirstStart):
    """The same under strace."""

    def program(self) -> Walstream:
        made = super().program()
        script = self.scene.folder / "traced"
        report = self.scene.folder.parent / "strace"
        script.write_text(trace.command(made.program, report), "utf-8")
        script.chmod(0o700)
        made.program = script
        return made


@pytest.mark.fault_long
@pytest.mark.takes(120)
def test_the_shim_sees_what_strace_sees(servers: Servers, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("no strace: apt-get install strace")
    tap = Tap(tmp_path / "tap", own_group())
    with staged(servers, 18, tmp_path / "run", tap) as scene:
        _Traced(scene).act()
        kafka = int(scene.bootstrap.rpartition(":")[2])
        seen = trace.Trace(scene.folder, scene.postgres_port, kafka)
        with (tmp_path / "strace").open() as lines:
            seen.read(lines)
    listed: Counter[str] = Counter()
    for site, count in tap.counts().items():
        if name := trace.common(site):
            listed[name] += count
    assert dict(seen.counts) == dict(listed)
