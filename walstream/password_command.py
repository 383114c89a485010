"""Passwords that a command prints: tokens that live for minutes, a vault's leases.

The command is run without a shell at each connection, so that no password is older than
the session that it opens. What it prints is in no log; neither is what it complains.
"""

import shlex
import subprocess
from collections.abc import Sequence
from typing import Final

from walstream.errors import ConfigError, Transient

_TIMEOUT_S: Final = 30.0
_LONGEST: Final = 1 << 16  # bytes; an IAM token has 2,000


def output_of(command: Sequence[str], key: str = "password_command") -> bytes:
    """Run the command of a key of the configuration, and give what it prints.

    Raises ConfigError where it cannot be run at all, and Transient where it fails or
    takes too long: what it asks may be away.
    """
    shown = shlex.quote(command[0])
    hint = _by_hand(command)
    try:
        done = subprocess.run(  # noqa: S603 - it is the operator's
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise Transient(
            f"{key}: {shown} takes longer than {_TIMEOUT_S:.0f} s", hint=hint
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "its words hold a NUL character"
        raise ConfigError(f"{key}: {shown} cannot be run: {why}", hint=hint) from None
    if done.returncode:
        how = f"code {done.returncode}"
        if done.returncode < 0:
            how = f"signal {-done.returncode}"
        raise Transient(f"{key}: {shown} ended with {how}", hint=hint)
    return done.stdout[:_LONGEST]


def password_of(command: Sequence[str]) -> str:
    """Give the first line that it prints; raise what `output_of` does, or Transient."""
    line = output_of(command).partition(b"\n")[0].removesuffix(b"\r")
    try:
        password = line.decode()
    except UnicodeDecodeError:
        password = ""
    if not password or "\0" in password:
        raise Transient(
            f"password_command: {shlex.quote(command[0])} printed no password in its"
            " first line",
            hint=_by_hand(command),
        )
    return password


def _by_hand(command: Sequence[str]) -> str:
    return f"run it by hand as walstream's user: {shlex.join(command)}"
