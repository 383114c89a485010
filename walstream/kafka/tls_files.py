"""Reasons why librdkafka refuses a TLS file: it names neither file nor fault.

Its words are OpenSSL's ("BIO lib", "PEM lib") for a file that is not there, may not be
read, holds something else, or is a key that its password does not open.
"""

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from walstream.config.librdkafka import ClientProperties
from walstream.config.trust import user_name

_OPTION: Final = re.compile(r"(?:ssl|https)\.(?:ca|crl|certificate|key)\.location")
_CERTIFICATE: Final = re.compile(rb"-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----")
_CRL: Final = re.compile(rb"-----BEGIN X509 CRL-----")
_KEY: Final = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_ENCRYPTED: Final = re.compile(rb"BEGIN ENCRYPTED PRIVATE KEY|Proc-Type: 4,ENCRYPTED")
_HELD: Final = {
    "ca": ("certificate", _CERTIFICATE),
    "crl": ("list of revoked certificates", _CRL),
    "certificate": ("certificate", _CERTIFICATE),
    "key": ("private key", _KEY),
}
_MISMATCH: Final = "key values mismatch"


class Flaw(NamedTuple):
    what: str
    hint: str


def flaw(properties: ClientProperties, said: str) -> Flaw | None:
    """Return what is wrong with the file that librdkafka's words are about."""
    named = _OPTION.search(said)
    if named is None or not (written := str(properties.get(named[0], ""))):
        return None
    option, file = named[0], Path(written)
    kind = option.split(".")[1]
    found = _of_file(option, file, kind)
    if found is None and kind == "key":
        found = _of_key(option, file, properties, said)
    return found


def _of_file(option: str, file: Path, kind: str) -> Flaw | None:
    """Judge what can be said of any of them."""
    holds, wanted = _HELD[kind]
    try:
        if wanted.search(file.read_bytes()):
            return None
    except IsADirectoryError:
        if kind == "ca":  # of many of them
            return None
        what, hint = "is a folder", f"name a file in {option}"
    except PermissionError:
        what = f"cannot be read by user {user_name(os.geteuid())}"
        hint = "let that user read it and enter its folders"
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            what = "does not exist"
        hint = f"correct {option}, or put the file there"
    else:
        what = f"holds no PEM {holds}"
        hint = f"name a file with -----BEGIN ...----- in {option}: openssl makes one"
    return Flaw(f"{option}: {file} {what}", hint)


def _of_key(
    option: str, file: Path, properties: ClientProperties, said: str
) -> Flaw | None:
    """Judge a key that can be read."""
    if _MISMATCH in said:
        certificate = properties.get("ssl.certificate.location", "the certificate")
        return Flaw(
            f"{option}: {file} is not the key of {certificate}",
            "correct ssl.key.location or ssl.certificate.location: they are a pair",
        )
    if not _ENCRYPTED.search(file.read_bytes()):
        return None
    if not properties.get("ssl.key.password"):
        return Flaw(
            f"{option}: {file} is encrypted, and ssl.key.password is not set",
            "set ssl.key.password",
        )
    return Flaw(
        f"{option}: ssl.key.password does not decrypt {file}",
        "correct ssl.key.password, or ssl.key.location",
    )
