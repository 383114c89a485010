"""A registry that answers as it is told: for faults that a real one has rarely.

It has what clients of Confluent's API ask for when they register, look up and read.
"""

import json
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from walstream.testing.servers.port import HOST

_JSON: Final = "application/vnd.schemaregistry.v1+json"


@dataclass
class FaultyRegistry:
    """What is registered, what was asked, and what goes wrong."""

    url: str = ""
    subjects: dict[str, list[int]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)  # by id, from 1 on
    kinds: dict[str, str] = field(default_factory=dict)
    """Languages of texts, but for Avro."""
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    faults: list[tuple[int, bytes, str]] = field(default_factory=list)
    """Answers of the next requests: status, body, type of the content."""
    always: tuple[int, bytes, str] | None = None
    slow: threading.Event | None = None  # each request waits for it
    login: tuple[str, str] | None = None  # who alone may ask
    _served: tuple["_Server", threading.Thread] | None = None

    def start(self) -> None:
        """Serve, again on the same port; what was registered is there."""
        server = _Server(urlsplit(self.url).port or 0, self)
        self.url = f"http://{HOST}:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=[0.02])
        thread.start()
        self._served = server, thread

    def stop(self) -> None:
        """Refuse connections."""
        if self._served is not None:
            server, thread = self._served
            server.shutdown()
            thread.join()
            server.server_close()
            self._served = None

    def register(self, subject: str, text: str, kind: str = "AVRO") -> int:
        """Give a schema its id, as a request does."""
        return self._register(subject, text, kind)

    def answered(
        self, headers: Mapping[str, str], method: str, path: list[str], body: Any
    ) -> tuple[int, Any]:
        """Answer whom it may know."""
        if self.login is not None:
            pair = b64encode(":".join(self.login).encode()).decode()
            if headers.get("Authorization") != f"Basic {pair}":
                return 401, {"error_code": 401, "message": "Unauthorized"}
        return self.answer(method, path, body)

    def fail(self, status: int, code: int = 0, message: str = "no") -> None:
        """Let the next request have this answer."""
        body = {"error_code": code or status, "message": message}
        self.faults.append((status, json.dumps(body).encode(), _JSON))

    def answer(  # noqa: C901, PLR0911, PLR0912 - a table
        self, method: str, path: list[str], body: Any
    ) -> tuple[int, Any]:
        """Answer as a registry does."""
        match method, path:
            case "POST", ["subjects", subject, "versions"]:
                kind = body.get("schemaType", "AVRO")
                return 200, {"id": self._register(subject, body["schema"], kind)}
            case "POST", ["subjects", subject]:
                number = self._number(body["schema"])
                if number not in self.subjects.get(subject, []):
                    return 404, {"error_code": 40403, "message": "Schema not found"}
                told = {"subject": subject, "version": 1, "id": number}
                return 200, {**told, "schema": body["schema"]}
            case "GET", ["subjects", subject, "versions", *rest]:
                versions = self.subjects.get(subject)
                if not versions:
                    return 404, {"error_code": 40401, "message": "no subject"}
                if not rest:
                    return 200, list(range(1, len(versions) + 1))
                told = {"subject": subject, "version": len(versions)}
                return 200, {**told, "id": versions[-1], **self._told(versions[-1])}
            case "GET", ["schemas", "ids", number]:
                if int(number) > len(self.texts):
                    return 404, {"error_code": 40403, "message": "Schema not found"}
                return 200, self._told(int(number))
            case "GET", ["schemas", "types"]:
                return 200, ["JSON", "PROTOBUF", "AVRO"]
            case "PUT", ["config", subject]:
                if body["compatibility"] == "NONE" and subject not in self.subjects:
                    # as Apicurio has it, where NONE is no rule
                    return 404, {"error_code": 40401, "message": "no subject"}
                return 200, body
            case "POST", ["compatibility", *_]:
                return 200, {"is_compatible": True}
            case _:
                pass
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _number(self, text: str) -> int:
        return self.texts.index(text) + 1 if text in self.texts else 0

    def _told(self, number: int) -> dict[str, str]:
        text = self.texts[number - 1]
        kind = self.kinds.get(text)
        return {"schema": text, **({"schemaType": kind} if kind is not None else {})}

    def _register(self, subject: str, text: str, kind: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
            if kind != "AVRO":
                self.kinds[text] = kind
        number = self._number(text)
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, registry: FaultyRegistry) -> None:
        self.registry = registry
        super().__init__((HOST, port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def _serve(self) -> None:
        registry = self.server.registry
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"null")
        parts = urlsplit(self.path).path.strip("/").split("/")
        path = [unquote(part) for part in parts]
        registry.asked.append((self.command, self.path, dict(self.headers)))
        if registry.slow is not None:
            registry.slow.wait(60)
        fault = registry.faults.pop(0) if registry.faults else registry.always
        if fault is None:
            status, found = registry.answered(
                dict(self.headers), self.command, path, body
            )
            fault = status, json.dumps(found).encode(), _JSON
        status, content, kind = fault
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - the library's

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def faulty_registry() -> Iterator[FaultyRegistry]:
    """Serve one on a port of its own."""
    registry = FaultyRegistry()
    registry.start()
    try:
        yield registry
    finally:
        registry.stop()
