"""TLS files that libpq silently ignores if they are missing.

Without its certificate a client is at best refused; without its list of revoked ones it
trusts what was revoked.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from walstream.errors import CertificateRefused

_NAMED: Final = {
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcrl": "PGSSLCRL",
    "sslcrldir": "PGSSLCRLDIR",
}
_SYSTEM: Final = "system"  # of sslrootcert: no file


def refuse_missing(
    parameters: Mapping[str, object], environment: Mapping[str, str], where: str
) -> None:
    """Raise CertificateRefused for a file of TLS that cannot be read.

    `where` is the key of the configuration that holds the parameters: dsn, or url.
    """
    if (parameters.get("sslmode") or environment.get("PGSSLMODE")) == "disable":
        return
    for name, variable in _NAMED.items():
        written = str(parameters.get(name) or "")
        file = written or environment.get(variable, "")
        if not file or file == _SYSTEM or (name == "sslkey" and ":" in file):
            continue  # a colon: of an engine, which keeps the key itself
        if flaw := _flaw(Path(file), private=name == "sslkey"):
            said = f"{name} of the {where}" if written else f"the variable {variable}"
            raise CertificateRefused(
                f"{said}: {file} {flaw}",
                hint=f"correct {said}, or put the file there, for walstream's user to"
                " read",
            )


def _flaw(file: Path, *, private: bool) -> str:
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    # of a key libpq says more: its owner, and who else may read it
    if not private and not os.access(file, os.R_OK):
        return "cannot be read by this user"
    return ""
