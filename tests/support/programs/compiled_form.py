"""Both forms of the hot path, a process each, which are told what to do with bytes.

`python -m tests.support.programs.compiled_form` is such a process: JSON lines in, JSON
lines out. The compiled form is what the wheel holds; it is made once for a run of the
tests.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from walstream.pipeline.shutdown import Waker

_ROOT: Final = Path(__file__).parents[3]
_HOOKS: Final = {"HATCH_BUILD_HOOKS_ENABLE": "1"}


def needs_a_compiler() -> None:
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    if not shutil.which("gcc") or not headers.exists():
        pytest.skip("no compiler: apt-get install gcc python3-dev")


def compiled(shared: Path) -> Path:
    """Give the folder of an unpacked wheel, made of this tree as it is now.

    Whoever comes first makes it, in a folder that all processes of a run share.
    """
    folder = shared / "compiled"
    with (shared / "compiled.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "unpacked").exists():
            _build(folder)
    return folder / "unpacked"


def _build(folder: Path) -> None:
    # by way of the sdist: a build in place would leave its modules in the tree
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run(
        [*build, str(_ROOT)],
        env={**os.environ, **_HOOKS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacking")
    (folder / "unpacking").rename(folder / "unpacked")


def environment(folder: Path, *, pure: bool) -> dict[str, str]:
    """Let Python take walstream from there, and all else from where it does now."""
    path = os.pathsep.join([str(folder), str(_ROOT)])
    return {**os.environ, "PYTHONPATH": path, "WALSTREAM_PURE": "1" if pure else "0"}


class Form:
    """One such process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, **order: Any) -> Any:
        into, out = self._process.stdin, self._process.stdout
        assert into is not None
        assert out is not None
        into.write(json.dumps(order) + "\n")
        into.flush()
        return json.loads(out.readline())


@contextmanager
def form(folder: Path, *, pure: bool) -> Iterator[Form]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.programs.compiled_form"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(folder, pure=pure),
    ) as process:
        yield Form(process)
        assert process.stdin is not None
        process.stdin.close()


# the process itself


def _answer(order: dict[str, Any]) -> Any:
    if "payloads" in order:
        return [_decoded(bytes.fromhex(one)) for one in order["payloads"]]
    if "frames" in order:
        frames = [bytes.fromhex(one) for one in order["frames"]]
        return _streamed(frames, order["start"])
    if "debezium" in order:
        return _debezium(order["debezium"])
    if "values" in order:
        return [_written(*one) for one in order["values"]]
    import walstream  # noqa: PLC0415 - after the choice of the form
    from walstream.telemetry.build import form as found  # noqa: PLC0415

    return [found(), str(walstream.__file__)]


def _decoded(payload: bytes) -> list[object]:
    from walstream.errors import DecodeError  # noqa: PLC0415
    from walstream.pipeline.pgoutput import decode  # noqa: PLC0415

    try:
        return [repr(decode(payload))]
    except DecodeError as error:
        return [str(error), error.tag, error.offset]


def _debezium(variant: str) -> list[object]:
    """Write the golden workload as Debezium does."""
    from tests.support.oracles.debezium import written  # noqa: PLC0415

    return [
        [one.topic, one.key, one.value, one.headers]
        for records in written(variant).values()
        for one in records
    ]


def _written(oid: int, modifier: int, text: str, options: dict[str, Any]) -> str:
    """Write a value of a type as JSON and as Avro, or what it is refused with."""
    from walstream.formats.debezium import DebeziumOptions  # noqa: PLC0415
    from walstream.formats.debezium.pg_type import ELEMENTS, PgType  # noqa: PLC0415
    from walstream.formats.debezium.types import ConnectTypes  # noqa: PLC0415
    from walstream.formats.encodings.avro.writers import writer  # noqa: PLC0415

    element = PgType(ELEMENTS[oid], "", modifier) if oid in ELEMENTS else None
    types = ConnectTypes(DebeziumOptions("app", **options))
    found = types.of(PgType(oid, "", modifier, (), element), lambda _: None)
    if found is None:
        return ""
    try:
        shown = found.render(text)
        data = writer(found, lambda _: None)(text)
    except ValueError as error:
        return f"refused: {error}"
    return f"{shown} {data!r}"


@cache
def _waker() -> "Waker":
    from walstream.pipeline.shutdown import Waker  # noqa: PLC0415

    return Waker()  # one for all: it is never closed


def _streamed(frames: list[bytes], start: int) -> list[object]:
    """Stream, and give the bytes of every record; or the error."""
    from walstream.pipeline.checkpoint import Checkpointer, StartPoint  # noqa: PLC0415
    from walstream.pipeline.loop import Pipeline  # noqa: PLC0415
    from walstream.pipeline.ports import Position  # noqa: PLC0415
    from walstream.pipeline.row_key import KeyHistory, KeySet  # noqa: PLC0415
    from walstream.pipeline.shutdown import Stop  # noqa: PLC0415
    from walstream.testing import (  # noqa: PLC0415
        MemoryCompanion,
        MemorySink,
        MemorySource,
        MemoryStore,
    )

    position = Position(start, 1, 1, "d", "s")
    positions = MemoryStore()
    positions.store(position)
    sink = MemorySink(partitions=3)
    waker = _waker()
    stop = Stop(waker, 10.0)
    companion = MemoryCompanion({"s.f": KeyHistory([KeySet(0, ("id",))])})
    said = ""
    with MemorySource(frames, on_exhausted=stop.request) as source:
        begins = StartPoint(position)
        checkpointer = Checkpointer(begins, positions, source, waker.wake)
        pipeline = Pipeline(source, [sink], companion, checkpointer)
        try:
            pipeline.run(stop)
        except Exception as error:  # noqa: BLE001 - both have to fail alike
            said = f"{type(error).__name__}: {error}"
        finally:
            checkpointer.close()
    return [[repr(record) for record in sink.sent], pipeline.ops_read, said]


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
