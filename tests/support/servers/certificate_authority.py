"""A small authority of certificates, for tests of TLS: each lives for an hour.

Kafka's brokers take a key and its chain in one PEM file; everybody else takes two.
"""

import ipaddress
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HERE: Final = ("localhost", "127.0.0.1")
_HOUR: Final = timedelta(hours=1)
_PRIVATE: Final = 0o600


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path

    @property
    def both(self) -> str:
        """In one PEM text."""
        return self.key.read_text("ascii") + self.certificate.read_text("ascii")

    def replace(self, other: "Pair") -> None:
        """Put another one in the place of this one, as whoever renews them does."""
        for mine, its in ((self.key, other.key), (self.certificate, other.certificate)):
            fresh = mine.with_suffix(".new")
            _write(fresh, its.read_bytes())
            fresh.rename(mine)


class Authority:
    """Signs what it is asked to; its own certificate is the file `path`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self._count = 0
        signed = (
            _draft(self._name, self._name, self._key, _now() + _HOUR)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()),
                critical=False,
            )
            .add_extension(_may_sign(), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def sign(
        self,
        name: str,
        *hosts: str,
        expired: bool = False,
        password: str = "",
    ) -> Pair:
        """Make a certificate; `password` encrypts its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        until = _now() - timedelta(minutes=5) if expired else _now() + _HOUR
        draft = _draft(_named(name), self._name, key, until).add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
            critical=False,
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general(host) for host in hosts])
            draft = draft.add_extension(names, critical=False)
        signed = draft.sign(self._key, hashes.SHA256())
        self._count += 1
        file = self._folder / f"{self.path.stem}-{self._count}"
        pair = Pair(file.with_suffix(".crt"), file.with_suffix(".key"))
        pair.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        _write(pair.key, _spelt(key, password))
        return pair


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, _PRIVATE), "wb") as file:
        file.write(content)


def _spelt(key: ec.EllipticCurvePrivateKey, password: str) -> bytes:
    form: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        form = serialization.BestAvailableEncryption(password.encode())
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(pem, pkcs8, form)


def _draft(
    name: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    until: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - _HOUR)
        .not_valid_after(until)
    )


def _may_sign() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _now() -> datetime:
    return datetime.now(UTC)
