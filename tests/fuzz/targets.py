"""The readers of what others write, each with the errors that it documents.

All else that escapes is a defect.
"""

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import orjson

from consumer.decoder import Decoder
from consumer.op import ConsumerRecord
from consumer.row_message import BadMessage, RowMessage, verify
from tests.unit.service.http import conftest as boards
from walstream.cli.tail import parse
from walstream.config import WrittenConfig
from walstream.errors import ConfigError, DecodeError, StateDamaged, WalstreamError
from walstream.formats import event, op
from walstream.pipeline.pgoutput import decode
from walstream.pipeline.pgoutput.frame import HEADER_SIZE
from walstream.pipeline.pgoutput.large_value import LargeFrame
from walstream.pipeline.pgoutput.large_value import read as read_large
from walstream.pipeline.ports import POSITION
from walstream.pipeline.row_key import KEYS
from walstream.pipeline.state_document import StateDocument
from walstream.service.http import app
from walstream.service.http.board import Board
from walstream.sources.kafka import offset_metadata
from walstream.sources.sql.gap_ledger import GapLedger
from walstream.state import lmdb_check
from walstream.state.control_message import request_of
from walstream.state.store import LmdbStore

CORPUS: Final = Path(__file__).parent / "corpus"
_SERVER_ERROR: Final = 500
_UNAVAILABLE: Final = 503


@dataclass(frozen=True, slots=True)
class Target:
    """A reader, and what it may raise."""

    name: str
    run: Callable[[bytes], object]
    raises: tuple[type[Exception], ...]
    weight: int = 1  # share of the time
    apart: bool = False  # in a process of its own: it may end by a signal

    @property
    def corpus(self) -> list[bytes]:
        return [path.read_bytes() for path in sorted((CORPUS / self.name).iterdir())]

    def finds(self, data: bytes) -> Exception | None:
        """Return what escapes and should not."""
        try:
            self.run(data)
        except self.raises:
            return None
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            return error
        return None


class _Documents:
    """A state folder of one document."""

    def __init__(self, document: object) -> None:
        self._document = document

    def read(self, _name: str) -> object | None:
        return self._document

    def names(self, _prefix: str) -> list[str]:
        return []

    def tree(self, name: str) -> dict[str, object]:
        return {name: self._document}

    @staticmethod
    def damaged(what: str) -> WalstreamError:
        return StateDamaged(what)


def _large(data: bytes) -> object:
    return read_large(LargeFrame(memoryview(bytes(HEADER_SIZE) + data)))


def _record(data: bytes) -> object:
    """Read a key and a value, of a line each, as a consumer does."""
    key, _, value = data.partition(b"\n")
    record = ConsumerRecord("t", 0, 1, key or None, value, 0, ())
    found = Decoder().op_of(record)
    if found is not None:
        repr(found)
        dict(found.new)
        dict(found.old)
    return found


def _shown(data: bytes) -> object:
    key, _, value = data.partition(b"\n")
    return parse.read(value, key or None)


def _event(data: bytes) -> object:
    found = event.decode(data)
    return found.columns, found.op()


def _row(data: bytes) -> object:
    message = RowMessage.of(data)
    verify(message)
    return message.digest


def _document(data: bytes) -> object:
    """Read any JSON as each of some documents of a state folder."""
    found = orjson.loads(data)
    kinds: tuple[StateDocument[Any], ...] = (POSITION, KEYS.of("public.t"))
    for kind in kinds:
        kind.read(_Documents(found))
    return None


def _gaps(data: bytes) -> object:
    ledger = GapLedger.of(orjson.loads(data), 60.0, 1000)
    return ledger.document(), ledger.due(1e9), ledger.keys


def _config(ending: str) -> Callable[[bytes], object]:
    def run(data: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, f"walstream.{ending}")
            file.write_bytes(data)
            return WrittenConfig.read(file, {"X": "${env:X}"}).config()

    return run


def _lmdb(data: bytes) -> object:
    """Use a state folder with such a file: it is whole, or it is damaged."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "data.mdb")
        file.write_bytes(data)
        lmdb_check.check(file)
        with LmdbStore(Path(folder)) as store:
            store.position()
            for name in store.names(""):
                store.read(name)
            store.write({"probe": {"a": 1}})
            return store.read("probe")


@lru_cache(maxsize=1)
def _application() -> Any:
    snapshot = boards.snapshot(boards.told())
    # its clock stands: a supervisor that is silent for long answers with 500, rightly
    board = Board(boards.config(), lambda: snapshot.made_at)
    board.publish(snapshot)
    return app.make(board, str)


def _http(data: bytes) -> object:
    """Answer a request as its server's parser hands it on: a line, headers, a body."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, target = first.partition(b" ")
    path, _, query = target.partition(b"?")
    headers = [
        (name.strip().lower(), text.strip())
        for name, _, text in (line.partition(b":") for line in lines)
    ]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method.decode("latin-1") or "GET",
        "scheme": "http",
        "path": path.decode(errors="replace") or "/",
        "raw_path": path,
        "root_path": "",
        "query_string": query,
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8321),
    }
    answers: list[int] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answers.append(message["status"])

    async def ask() -> None:
        async with asyncio.timeout(10):
            await _application()(scope, receive, send)

    asyncio.run(ask())
    if answers[0] >= _SERVER_ERROR and answers[0] != _UNAVAILABLE:
        raise AssertionError(f"answered with {answers[0]}")
    return answers


TARGETS: Final = (
    Target("pgoutput", decode, (DecodeError,), weight=6),
    Target("large_row", _large, (DecodeError,), weight=2),
    Target("op", op.decode, (WalstreamError,)),
    Target("record", _record, (WalstreamError,), weight=2),
    Target("event", _event, (WalstreamError,)),
    Target("row", _row, (BadMessage,)),
    Target("tail", _shown, ()),
    Target("control", request_of, (ValueError,)),
    Target(
        "offset_metadata",
        lambda data: offset_metadata.read(data.decode(errors="replace")),
        (),
    ),
    Target("state_document", _document, (StateDamaged, orjson.JSONDecodeError)),
    Target("gap_ledger", _gaps, (ValueError,)),
    Target("config_toml", _config("toml"), (ConfigError,)),
    Target("config_yaml", _config("yaml"), (ConfigError,)),
    Target("http", _http, ()),
    Target("lmdb", _lmdb, (lmdb_check.Broken, StateDamaged), apart=True),
)
BY_NAME: Final = {target.name: target for target in TARGETS}
