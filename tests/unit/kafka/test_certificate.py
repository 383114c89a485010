"""Certificates that do not hold, of a server in this process."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from walstream.kafka.certificate import CertificateProbe

Serve = Callable[..., int]


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("authority")
    for name in ("ca", "other"):
        openssl(
            folder,
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9"),
            *("-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}"),
        )
    return folder


@pytest.fixture
def serve(authority: Path) -> Iterator[Serve]:
    """Serve one handshake with a certificate of this name, and so many days."""
    with ExitStack() as stack:

        def start(name: str, days: int = 9) -> int:
            mark = f"{name}{days}"
            (authority / f"{mark}.ext").write_text(f"subjectAltName=DNS:{name}\n")
            openssl(
                authority,
                *("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"),
                *("-keyout", f"{mark}.key", "-out", f"{mark}.csr"),
            )
            openssl(
                authority,
                *("x509", "-req", "-in", f"{mark}.csr", "-CA", "ca.pem"),
                *("-CAkey", "ca.key", "-CAcreateserial", "-days", str(days)),
                *("-extfile", f"{mark}.ext", "-out", f"{mark}.pem"),
            )
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(
                authority / f"{mark}.pem", authority / f"{mark}.key"
            )
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def answer() -> None:
                with suppress(OSError):
                    client, _ = server.accept()
                    with client, context.wrap_socket(client, server_side=True) as whole:
                        whole.recv(1)

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            stack.callback(thread.join, 5)
            port: int = server.getsockname()[1]
            return port

        yield start


@pytest.mark.parametrize(
    ("name", "days", "ca", "why", "hint"),
    [
        ("localhost", -1, "ca", "has expired", "renew"),
        ("localhost", 9, "other", "unknown authority", "ssl.ca.location"),
        ("elsewhere.test", 9, "ca", "another host's", "advertised.listeners"),
    ],
)
def test_expired_unknown_and_misnamed_are_told_apart(  # noqa: PLR0913, PLR0917 - a table
    serve: Serve, authority: Path, name: str, days: int, ca: str, why: str, hint: str
) -> None:
    port = serve(name, days)
    look = CertificateProbe({"ssl.ca.location": str(authority / f"{ca}.pem")})
    found = look.at("localhost", port)
    assert found is not None
    assert why in found.why
    assert f"localhost:{port}" in found.why
    assert hint in found.hint
    assert found.refused


def test_one_that_holds_and_a_server_that_is_gone_say_nothing(
    serve: Serve, authority: Path
) -> None:
    look = CertificateProbe({"ssl.ca.pem": (authority / "ca.pem").read_text()})
    assert look.at("localhost", serve("localhost")) is None
    assert look.at("localhost", 1) is None


def test_names_are_compared_as_the_client_compares_them(
    serve: Serve, authority: Path
) -> None:
    given = {"ssl.ca.location": str(authority / "ca.pem")}
    given["ssl.endpoint.identification.algorithm"] = "none"
    assert CertificateProbe(given).at("localhost", serve("elsewhere.test")) is None
