"""A schema registry inside this process, over HTTP: Confluent's REST API, and faults.

Ids belong to a schema's text, whatever its subject. What a client asked stands in
`requests`.
"""

import json
import socket
import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

import fastavro

HOST: Final = "127.0.0.1"
_JSON: Final = "application/vnd.schemaregistry.v1+json"
_HTML: Final = "<html><body><h1>It works!</h1></body></html>"
_CLOSED_POLL_S: Final = 0.02

SUBJECT_UNKNOWN: Final = 40401
VERSION_UNKNOWN: Final = 40402
SCHEMA_UNKNOWN: Final = 40403
INVALID: Final = 42201


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str  # without the prefix and the query
    query: str
    document: Any  # of the body
    authorization: str | None


@dataclass(frozen=True)
class Answer:
    status: int
    document: Any


class Refusal(Exception):
    """Raised for an answer that is an error."""

    def __init__(self, status: int, message: str, code: int = 0) -> None:
        super().__init__(message)
        document = {"error_code": code or status, "message": message}
        self.answer = Answer(status, document)


@dataclass
class _Fault:
    status: int
    body: str
    kind: str
    left: int
    method: str | None


@dataclass
class FakeRegistry:
    """Started by `with`; its faults may be switched at any time."""

    prefix: str = ""  # of all paths: Apicurio has /apis/ccompat/v7
    login: tuple[str, str] | None = None  # who alone may ask
    read_only: bool = False  # 403 for whoever registers
    delay_s: float = 0.0  # before each answer
    incompatible: set[str] = field(default_factory=set)  # subjects: 409
    level: str = "BACKWARD"
    levels: dict[str, str] = field(default_factory=dict)  # of subjects
    first_id: int = 1
    requests: list[Asked] = field(default_factory=list)
    schemas: dict[int, str] = field(default_factory=dict)
    versions: dict[str, list[int]] = field(default_factory=dict)  # ids, by subject

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._faults: list[_Fault] = []
        self._port = 0
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    # --- as a server

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}{self.prefix}"

    def start(self) -> None:
        """Listen; again on the same port, with what was registered."""
        self._server = _Server((HOST, self._port), self)
        self._port = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_CLOSED_POLL_S,), daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections from now on, and cut those that are open."""
        server, self._server = self._server, None
        if server is None or self._thread is None:
            return
        server.shutdown()
        server.server_close()
        server.cut()
        self._thread.join(10)

    # --- faults

    def fail(
        self,
        status: int,
        count: int = 1,
        *,
        method: str | None = None,
        code: int = 0,
        message: str = "Error",
    ) -> None:
        """Answer the next requests so, or those of a method alone."""
        body = json.dumps({"error_code": code or status, "message": message})
        self._fault(_Fault(status, body, _JSON, count, method))

    def html(self, count: int = 1, status: int = 200) -> None:
        """Answer the next requests as another server does."""
        self._fault(_Fault(status, _HTML, "text/html", count, None))

    def heal(self) -> None:
        """Forget what was to fail."""
        with self._lock:
            self._faults.clear()
        self.delay_s = 0.0

    def _fault(self, fault: _Fault) -> None:
        with self._lock:
            self._faults.append(fault)

    def _due(self, method: str) -> _Fault | None:
        with self._lock:
            for fault in self._faults:
                if fault.left > 0 and fault.method in {None, method}:
                    fault.left -= 1
                    return fault
        return None

    # --- content

    def register(self, subject: str, text: str) -> int:
        """Give a schema its id, as POST does."""
        with self._lock:
            found = self._id(text)
            if found is None:
                found = self.first_id + len(self.schemas)
                self.schemas[found] = text
            ids = self.versions.setdefault(subject, [])
            if found not in ids:
                ids.append(found)
            return found

    def asked(self, method: str | None = None, start: str = "") -> list[Asked]:
        """Return the requests of a method, to paths that begin so."""
        return [
            one
            for one in [*self.requests]
            if method in {None, one.method} and one.path.startswith(start)
        ]

    def counts(self) -> Counter[str]:
        """Count the requests by method and path."""
        return Counter(f"{one.method} {one.path}" for one in [*self.requests])

    def _id(self, text: str) -> int | None:
        wanted = json.loads(text)
        same = (n for n, known in self.schemas.items() if json.loads(known) == wanted)
        return next(same, None)

    # --- answers

    def serve(self, asked: Asked) -> Answer:
        """Answer what no fault does."""
        if self.login is not None:
            pair = b64encode(":".join(self.login).encode()).decode()
            if asked.authorization != f"Basic {pair}":
                raise Refusal(401, "Unauthorized")
        parts = [unquote(part) for part in asked.path.strip("/").split("/")]
        serve = _SERVED.get(parts[0])
        if serve is None:
            raise Refusal(404, "HTTP 404 Not Found")
        with self._lock:
            return serve(self, asked, parts[1:])

    def _subjects(self, asked: Asked, parts: list[str]) -> Answer:
        match asked.method, parts:
            case "GET", []:
                return Answer(200, sorted(self.versions))
            case "POST", [subject, "versions"]:
                return self._registered(subject, _text(asked))
            case "POST", [subject]:
                return self._looked_up(subject, _text(asked))
            case "GET", [subject, "versions"]:
                count = len(self._of(subject))
                return Answer(200, list(range(1, count + 1)))
            case "GET", [subject, "versions", version]:
                return self._version(subject, version)
            case "DELETE", [subject]:
                gone = self._of(subject)
                del self.versions[subject]
                return Answer(200, list(range(1, len(gone) + 1)))
            case _:
                raise Refusal(404, "HTTP 404 Not Found")

    def _registered(self, subject: str, text: str) -> Answer:
        if self.read_only:
            raise Refusal(403, "User is denied operation Write on Subject", 40301)
        is_known = self._id(text) in self.versions.get(subject, [])
        if subject in self.incompatible and not is_known:
            raise Refusal(
                409,
                "Schema being registered is incompatible with an earlier schema"
                f' for subject "{subject}"',
            )
        return Answer(200, {"id": self.register(subject, text)})

    def _looked_up(self, subject: str, text: str) -> Answer:
        ids = self._of(subject)
        known = self._id(text)
        if known is None or known not in ids:
            raise Refusal(404, "Schema not found", SCHEMA_UNKNOWN)
        return self._shown(subject, known)

    def _version(self, subject: str, version: str) -> Answer:
        ids = self._of(subject)
        number = len(ids) if version == "latest" else int(version)
        if not 1 <= number <= len(ids):
            raise Refusal(404, f"Version {number} not found.", VERSION_UNKNOWN)
        return self._shown(subject, ids[number - 1])

    def _shown(self, subject: str, number: int) -> Answer:
        version = self.versions[subject].index(number) + 1
        text = self.schemas[number]
        named = {"subject": subject, "version": version, "id": number}
        return Answer(200, {**named, "schema": text})

    def _of(self, subject: str) -> list[int]:
        if subject not in self.versions:
            raise Refusal(404, f"Subject '{subject}' not found.", SUBJECT_UNKNOWN)
        return self.versions[subject]

    def _schemas(self, asked: Asked, parts: list[str]) -> Answer:
        match asked.method, parts:
            case "GET", ["types"]:
                return Answer(200, ["AVRO"])
            case "GET", ["ids", number]:
                return Answer(200, {"schema": self._text_of(number)})
            case "GET", ["ids", number, "subjects"]:
                self._text_of(number)
                named = (s for s, ids in self.versions.items() if int(number) in ids)
                return Answer(200, sorted(named))
            case _:
                raise Refusal(404, "HTTP 404 Not Found")

    def _text_of(self, number: str) -> str:
        text = self.schemas.get(int(number))
        if text is None:
            raise Refusal(404, f"Schema {number} not found", SCHEMA_UNKNOWN)
        return text

    def _compatibility(self, asked: Asked, parts: list[str]) -> Answer:
        match asked.method, parts:
            case "POST", ["subjects", subject, "versions", *_]:
                _text(asked)
                self._of(subject)
                fits = subject not in self.incompatible
                return Answer(200, {"is_compatible": fits})
            case _:
                raise Refusal(404, "HTTP 404 Not Found")

    def _config(self, asked: Asked, parts: list[str]) -> Answer:
        if asked.method == "PUT":
            level = asked.document["compatibility"]
            if parts:
                self.levels[parts[0]] = level
            else:
                self.level = level
            return Answer(200, {"compatibility": level})
        level = self.levels.get(parts[0]) if parts else self.level
        if level is None and "defaultToGlobal=true" in asked.query:
            level = self.level
        if level is None:
            raise Refusal(404, f"Subject '{parts[0]}' not configured.", 40408)
        return Answer(200, {"compatibilityLevel": level})


def _text(asked: Asked) -> str:
    """Return the schema that is asked about, if it is one."""
    text = asked.document["schema"]
    try:
        fastavro.parse_schema(json.loads(text))
    except Exception as error:  # noqa: BLE001 - whatever that reader says
        raise Refusal(422, f"Invalid schema: {error}", INVALID) from None
    found: str = text
    return found


_SERVED: Final[dict[str, Callable[[FakeRegistry, Asked, list[str]], Answer]]] = {
    "subjects": FakeRegistry._subjects,  # noqa: SLF001 - its own dispatch
    "schemas": FakeRegistry._schemas,  # noqa: SLF001
    "compatibility": FakeRegistry._compatibility,  # noqa: SLF001
    "config": FakeRegistry._config,  # noqa: SLF001
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], registry: FakeRegistry) -> None:
        self.registry = registry
        self._open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def cut(self) -> None:
        for one in [*self._open]:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that left."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _serve(self) -> None:
        registry = self.server.registry
        split = urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        path = split.path
        asked = Asked(
            self.command,
            path.removeprefix(registry.prefix),
            split.query,
            json.loads(body) if body else None,
            self.headers.get("Authorization"),
        )
        registry.requests.append(asked)
        if registry.delay_s:
            time.sleep(registry.delay_s)
        fault = registry._due(self.command)  # noqa: SLF001 - the same module's
        if fault is not None:
            self._send(fault.status, fault.body, fault.kind)
            return
        try:
            if not path.startswith(registry.prefix):
                raise Refusal(404, "HTTP 404 Not Found")
            answer = registry.serve(asked)
        except Refusal as refusal:
            answer = refusal.answer
        self._send(answer.status, json.dumps(answer.document), _JSON)

    def _send(self, status: int, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""
