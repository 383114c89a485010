"""What strace saw of a run, named by call sites: the shim's own list has to agree.

It shares no code with `shim.c`: it reads strace's lines alone. What strace cannot know,
the Python code behind a call, is left out of both lists; so are pipes, local
sockets, and the rest of a message that takes several calls.
"""

import re
import shlex
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_CALLS: Final = {
    **{name: name for name in ("write", "writev", "pwrite64", "pwritev", "ftruncate")},
    **{name: name for name in ("fsync", "fdatasync", "fallocate", "connect", "bind")},
    **{name: name for name in ("sendto", "sendmsg", "rmdir")},
    **dict.fromkeys(("chmod", "fchmod"), "chmod"),
    **dict.fromkeys(("mkdir", "mkdirat"), "mkdir"),
    **dict.fromkeys(("unlink", "unlinkat"), "unlink"),
    **dict.fromkeys(("open", "openat"), "creat"),
    **dict.fromkeys(("rename", "renameat", "renameat2"), "rename"),
}
_PROCESSES: Final = ("execve", "clone", "clone3", "vfork", "fork")
_ROLES: Final = (
    ("walstream.service.worker_main", "worker"),
    ("walstream.spark.driver", "driver"),
    ("-m consumer ", "consumer"),
    ("/walstream run ", "supervisor"),
)
_LINE: Final = re.compile(r"^(?P<thread>\d+) +(?P<text>.*)$")
_RESUMED: Final = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$")
_CALL: Final = re.compile(r"^(?P<name>\w+)\((?P<given>.*)\) += (?P<result>-?\d+)")
_STRING: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_HEX: Final = re.compile(r"\\x([0-9a-f]{2})")
_PEER: Final = re.compile(r"TCP:\[[^\]]*->[^\]]*?:(\d+)\]")
_ADDRESS: Final = re.compile(r"sin_port=htons\((\d+)\)")
_SSL_REQUEST: Final = 80877103
_TWO_WORDS: Final = {b"CREATE", b"DROP", b"ALTER"}
_WORD: Final = re.compile(rb"\s*([A-Za-z_]*)")


def command(program: Path, report: Path) -> str:
    """Return a shell script that runs a program under strace, in its own process.

    The report of a next start is added to that of the one before.
    """
    traced = ",".join([*_CALLS, *_PROCESSES])
    words = ["-D", "-A", "-f", "-yy", "-xx", "-s", "20000", "-o", str(report)]
    words += ["-e", f"trace={traced}", "-e", "signal=none", str(program)]
    # strace itself is not tapped
    start = 'exec env -u LD_PRELOAD strace -E "LD_PRELOAD=$LD_PRELOAD"'
    return f'#!/bin/sh\n{start} {shlex.join(words)} "$@"\n'


def common(site: str) -> str:
    """Return what of a shim's site strace can see; "": nothing."""
    role, called, target, *rest = site.partition(" @")[0].split(" ", 3)
    said = rest[0] if rest else ""
    local = target.endswith(".sock") and called in {"connect", "bind", "sendto"}
    if target == "pipe" or said == "(goes on)" or local:
        return ""
    return " ".join(
        filter(None, [role.replace("sink", "worker"), called, target, said])
    )


@dataclass
class _Connection:
    """A socket of PostgreSQL or Kafka, as its messages tell."""

    kind: str  # PostgreSQL, SQL, replication, Kafka
    rest: int = 0  # bytes of a message that was begun
    untagged: bool = True

    def name(self, sent: bytes) -> str:
        """Name the message that begins here; "": none does."""
        if self.rest > 0:
            return ""
        if self.kind == "Kafka":
            return f"api {int.from_bytes(sent[4:6], 'big')}"
        if self.kind == "PostgreSQL":
            if int.from_bytes(sent[4:8], "big") == _SSL_REQUEST:
                return "SSLRequest"
            self.kind = "replication" if b"replication\0" in sent else "SQL"
            return "StartupMessage"
        tag, body = sent[:1], sent[5:]
        if tag == b"P":
            body = body.partition(b"\0")[2]
        if tag in {b"Q", b"P"}:
            return _verb(body)
        return "status update" if body[:1] == b"r" and tag == b"d" else tag.decode()

    def went(self, sent: bytes) -> None:
        at = 0
        while at < len(sent):
            if self.rest > 0:
                step = min(self.rest, len(sent) - at)
                self.rest -= step
                at += step
                continue
            if self.kind == "PostgreSQL":
                return
            tag = 0 if self.kind == "Kafka" or self.untagged else 1
            (size,) = struct.unpack_from("!I", sent, at + tag)
            self.rest = size + (4 if self.kind == "Kafka" else tag)
            self.untagged = False


def _verb(query: bytes) -> str:
    first = _WORD.match(query)
    assert first is not None
    words = [first.group(1).upper()]
    if words[0] in _TWO_WORDS and (second := _WORD.match(query, first.end())):
        words.append(second.group(1).upper())
    return b" ".join(words).decode()


@dataclass
class Trace:
    """Reads the lines of one run."""

    folder: Path  # what its own files are below
    postgres: int  # port
    kafka: int
    counts: Counter[str] = field(default_factory=Counter)
    _roles: dict[int, str] = field(default_factory=dict)  # by thread
    _owners: dict[int, int] = field(default_factory=dict)  # processes, by thread
    _begun: dict[int, str] = field(default_factory=dict)  # unfinished calls
    _early: defaultdict[int, list[str]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _connections: dict[tuple[int, str], _Connection] = field(default_factory=dict)

    def read(self, lines: Iterable[str]) -> Mapping[str, int]:
        """Count the calls of each site."""
        for line in lines:
            if found := _LINE.match(line):
                self._take(int(found["thread"]), found["text"])
        return self.counts

    def _take(self, thread: int, text: str) -> None:
        if text.endswith("<unfinished ...>"):
            self._begun[thread] = text.removesuffix("<unfinished ...>").rstrip()
            return
        if resumed := _RESUMED.match(text):
            text = self._begun.pop(thread, "") + resumed.group(2).lstrip()
        if (call := _CALL.match(text)) is None:
            return
        name, given, result = call["name"], call["given"], int(call["result"])
        if name == "execve":
            self._execute(thread, given, result)
        elif name in _PROCESSES:
            self._begin(thread, result, is_thread="CLONE_THREAD" in given)
        elif thread not in self._roles:
            self._early[thread].append(text)  # its creator has not returned yet
        elif self._roles[thread]:
            self._count(self._owners.get(thread, thread), self._roles[thread], call)

    def _begin(self, creator: int, begun: int, *, is_thread: bool) -> None:
        # who executed something before its creator returned has a role of its own
        self._roles.setdefault(begun, self._roles.get(creator, ""))
        owner = self._owners.get(creator, creator)
        self._owners.setdefault(begun, owner if is_thread else begun)
        for text in self._early.pop(begun, []):
            self._take(begun, text)

    def _execute(self, thread: int, given: str, result: int) -> None:
        if result:
            return
        words = " ".join(_text(one) for one in _STRING.findall(given)[1:])
        self._roles[thread] = next(
            (role for part, role in _ROLES if part in f"{words} "), ""
        )

    def _count(self, process: int, role: str, call: re.Match[str]) -> None:
        name, given = call["name"], call["given"]
        if name in {"open", "openat"} and "O_CREAT" not in given:
            return
        called = _CALLS[name]
        if name == "unlinkat" and "AT_REMOVEDIR" in given:
            called = "rmdir"
        descriptor = re.match(r"(\d+)<(.*?)>(?:,|$)", given)
        if called in {"connect", "bind"}:
            target = self._address(process, called, given)
        elif descriptor and not name.endswith("at"):
            target = self._descriptor(process, descriptor, given, int(call["result"]))
        else:
            target = self._path(given)
        if target:
            self.counts[f"{role} {called} {target}"] += 1

    def _address(self, process: int, called: str, given: str) -> str:
        found = _ADDRESS.search(given)
        if called == "bind" or found is None:
            return ""
        port = int(found.group(1))
        known = {self.postgres: "PostgreSQL", self.kafka: "Kafka"}
        target = known.get(port, "network" if port else "")
        if target in known.values():
            number = given.partition("<")[0]
            self._connections[process, number] = _Connection(target)
        return target

    def _descriptor(
        self, process: int, descriptor: re.Match[str], given: str, result: int
    ) -> str:
        number, what = descriptor.groups()
        if number in {"1", "2"}:
            regular = what.startswith(("/", "\\x2f", "pipe", "\\x70\\x69\\x70\\x65"))
            return {"1": "stdout", "2": "stderr"}[number] if regular else ""
        if _PEER.search(_text(what)):
            return self._message(process, number, given, result)
        return self._below(_text(what))

    def _message(self, process: int, number: str, given: str, result: int) -> str:
        connection = self._connections.get((process, number))
        if connection is None:
            return ""
        parts = _STRING.findall(given[given.index(">") :])
        sent = b"".join(bytes.fromhex(part.replace("\\x", "")) for part in parts)
        name = connection.name(sent)
        if result > 0:
            connection.went(sent[:result])
        return f"{connection.kind} {name}" if name else ""

    def _path(self, given: str) -> str:
        base = re.match(r"\w+<(.*?)>, ", given)
        texts = _STRING.findall(given)
        if not texts:
            return ""
        path = _text(texts[-1])
        if not path.startswith("/") and base is not None:
            path = f"{_text(base.group(1))}/{path}"
        return self._below(path)

    def _below(self, path: str) -> str:
        home = f"{self.folder.resolve()}/"
        if not path.startswith(home):
            return ""
        return re.sub(r"[0-9a-f]{8,}|\d+", "#", path.removeprefix(home))


def _text(hexed: str) -> str:
    """Return what strace wrote as hex digits."""
    return _HEX.sub(lambda one: chr(int(one.group(1), 16)), hexed)
