"""Planted secrets, and a search for them: whatever the spelling, wherever they show.

`Canaries` makes them and finds them in bytes: as they stand, in base64 at any place of
a text, in hexadecimal, in UTF-16, compressed, and in any of these within another.
`Watch` looks at the processes that inherited its mark, as whoever may list them does:
their arguments, their environments, and their files that are deleted and still open;
and at a folder of temporary files.
"""

import base64
import binascii
import bz2
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

from tests.support.threads import Threads

_CANARY: Final = re.compile(rb"cAnArY[0-9a-f]{16}")
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_-]{16,}")
_HEX: Final = re.compile(rb"(?:[0-9a-fA-F]{2}){16,}")
_PACKED: Final[Mapping[bytes, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b\x08": lambda data: zlib.decompressobj(47).decompress(data),
    b"\x78\x01": lambda data: zlib.decompressobj().decompress(data),
    b"\x78\x9c": lambda data: zlib.decompressobj().decompress(data),
    b"\x78\xda": lambda data: zlib.decompressobj().decompress(data),
    b"BZh": lambda data: bz2.BZ2Decompressor().decompress(data),
    b"\xfd7zXZ\x00": lambda data: lzma.LZMADecompressor().decompress(data),
}
_DEPTH: Final = 3  # spellings within spellings
_SEEN_EVERY_S: Final = 0.05
_MARK: Final = "WALSTREAM_TEST_WATCHED"
_LARGEST: Final = 32 << 20


class Canaries:
    """Secrets that occur nowhere but where they were planted."""

    def __init__(self) -> None:
        self._planted: dict[bytes, str] = {}

    def plant(self, where: str) -> str:
        """Make one, for this place of the configuration."""
        made = f"cAnArY{token_hex(8)}"
        self._planted[made.encode()] = where
        return made

    def found(self, *texts: str | bytes) -> set[str]:
        """Name the places whose secrets are in any of these, in whatever spelling."""
        found: set[str] = set()
        for text in texts:
            data = text.encode() if isinstance(text, str) else text
            for spelling in spellings(data):
                found.update(
                    self._planted.get(one, "of another test")
                    for one in _CANARY.findall(spelling)
                )
        return found

    def found_below(self, *folders: Path) -> dict[str, set[str]]:
        """Search all files; give those that hold one."""
        found = {}
        for folder in folders:
            for path in folder.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    names = self.found(path.read_bytes(), str(path))
                    if names:
                        found[str(path)] = names
        return found


def spellings(data: bytes, depth: int = _DEPTH) -> Iterator[bytes]:
    """Give it as it stands, and everything that it may be another form of."""
    yield data
    if b"\0" in data:
        yield data.replace(b"\0", b"")  # UTF-16
    if not depth:
        return
    for inner in _unpacked(data):
        yield from spellings(inner, depth - 1)
    # lines of 76, and what stands in one line
    for text in {data, data.replace(b"\r", b"").replace(b"\n", b"")}:
        for run in set(_BASE64.findall(text)):
            plain = run.translate(bytes.maketrans(b"-_", b"+/"))
            for begin in range(4):  # it may begin amid a longer word
                yield from spellings(_decoded(plain[begin:]), depth - 1)
    for run in set(_HEX.findall(data)):
        yield from spellings(binascii.unhexlify(run), depth - 1)


def _decoded(run: bytes) -> bytes:
    whole = run[: len(run) // 4 * 4]
    rest = run[len(whole) :]
    decoded = base64.b64decode(whole)
    if len(rest) > 1:
        decoded += base64.b64decode(rest + b"=" * (4 - len(rest)))
    return decoded


def _unpacked(data: bytes) -> Iterator[bytes]:
    for magic, unpack in _PACKED.items():
        at = data.find(magic)
        while at >= 0:
            with suppress(zlib.error, OSError, lzma.LZMAError, ValueError):
                yield unpack(data[at:])
            at = data.find(magic, at + 1)


class Watch(Threads):
    """Looks at what was started under it, again and again, until it is left."""

    def __init__(self, temporary: Path, given: Iterable[str] = ()) -> None:
        """`given` are the variables that an operator set, and that stay what they are.

        What is started with `environment` is watched.
        """
        super().__init__(self._watch)
        self.temporary = temporary
        self.mark = token_hex(8)
        self.environment = {_MARK: self.mark, "TMPDIR": str(temporary)}
        self.seen: dict[tuple[str, str], bytes] = {}  # by kind and process or path
        self._given = {one.encode() for one in given}

    def of(self, kind: str) -> list[bytes]:
        return [text for (found, _), text in self.seen.items() if found == kind]

    def names(self, kind: str) -> str:
        """Give the first arguments of all that were seen, to claim who was there."""
        return b"\n".join(self.of(kind)).decode(errors="replace")

    def _watch(self) -> None:
        while not self.leaving.wait(_SEEN_EVERY_S):
            self.look()

    def look(self) -> None:
        """Look once."""
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                self._look_at(process)
        for path in _files_below(self.temporary):
            with suppress(OSError):
                if _is_open(path, self.temporary):
                    self.seen["temporary", str(path)] = path.read_bytes()[:_LARGEST]

    def _look_at(self, process: Path) -> None:
        environ = (process / "environ").read_bytes()
        if f"{_MARK}={self.mark}".encode() not in environ:
            return
        kept = [one for one in environ.split(b"\0") if one not in self._given]
        self._keep("environ", process.name, b"\0".join(kept))
        self._keep("argv", process.name, (process / "cmdline").read_bytes())
        for file in (process / "fd").iterdir():
            if file.readlink().name.endswith("(deleted)"):
                found = file.stat()
                if stat.S_ISREG(found.st_mode) and found.st_size < _LARGEST:
                    name = f"{process.name}/{file.name}/{found.st_size}"
                    if ("deleted", name) not in self.seen:
                        self.seen["deleted", name] = file.read_bytes()

    def _keep(self, kind: str, process: str, text: bytes) -> None:
        # it changes when a process becomes another program
        self.seen[kind, f"{process}/{hash(text)}"] = text


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files, passing over folders that are removed meanwhile."""
    for top, _, names in os.walk(folder):
        yield from (Path(top, name) for name in names)


def _is_open(path: Path, top: Path) -> bool:
    """Tell whether others than its owner may read a file, by all folders above it."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        return False
    above = path.parents[: len(path.relative_to(top).parts) - 1]
    return all(
        one.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        for one in (found, *(folder.lstat() for folder in above))
    )
