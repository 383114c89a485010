"""Passwords that a command prints: tokens that live for minutes, a vault's leases.

The command is run without a shell at each connection, so that no password is older than
the session that it opens. What it prints is in no log; neither is what it complains,
nor what stands behind its name, which may be a secret.
"""

import contextlib
import errno
import os
import select
import shlex
import signal
import subprocess
from collections.abc import Sequence
from typing import Final

from walstream.errors import CommandMissing, ConfigError, Transient
from walstream.telemetry import runtime

_TIMEOUT_S: Final = 30.0
_LOOK_MS: Final = 50
_LONGEST: Final = 1 << 16  # bytes; an IAM token has 2,000
_NOT_THERE: Final = frozenset(
    {
        *(errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.EPERM),
        *(errno.ELOOP, errno.ENAMETOOLONG, errno.EISDIR, errno.E2BIG),
    }
)


def output_of(command: Sequence[str], key: str = "password_command") -> bytes:
    """Run the command of a key of the configuration, and give what it prints.

    Raises ConfigError where it cannot be run at all, and Transient where it fails or
    takes too long: what it asks may be away. What it leaves running is not waited for.
    """
    shown = f"{key}: {shlex.quote(command[0])}"
    hint = f"run the {key} by hand as walstream's user"
    with _started(command, shown, hint) as process:
        try:
            printed = _printed(process)
        finally:
            if process.poll() is None:  # and what it started, which might wait for ever
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    if printed is None:
        raise Transient(f"{shown} takes longer than {_TIMEOUT_S:.0f} s", hint=hint)
    if len(printed) > _LONGEST:
        raise Transient(f"{shown} prints more than {_LONGEST >> 10} KiB", hint=hint)
    if code := process.returncode:
        how = f"code {code}" if code > 0 else f"signal {-code}"
        raise Transient(f"{shown} ended with {how}", hint=hint)
    return printed


def _started(
    command: Sequence[str], shown: str, hint: str
) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(  # noqa: S603 - it is the operator's
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # it asks no terminal, and ends with its children
        )
    except ValueError:
        raise ConfigError(
            f"{shown} cannot be run: its arguments hold a NUL character", hint=hint
        ) from None
    except OSError as error:
        # no process or memory is left, a file system is away: that passes
        kind = CommandMissing if error.errno in _NOT_THERE else Transient
        raise kind(f"{shown} cannot be run: {error.strerror}", hint=hint) from None


def _printed(process: "subprocess.Popen[bytes]") -> bytes | None:
    """Return what it prints until it ends, or is too much; None: it takes too long.

    Its output may stay open behind it: an agent that it started inherits it.
    """
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    outlet = process.stdout.fileno()
    readable = select.poll()  # a process of many files has higher numbers than select's
    readable.register(outlet, select.POLLIN)
    printed, deadline, more = b"", runtime.monotonic() + _TIMEOUT_S, True
    while len(printed) <= _LONGEST:
        ended = process.poll() is not None  # asked first: it prints no more then
        if more and readable.poll(0 if ended else _LOOK_MS):
            read = os.read(outlet, _LONGEST)
            printed, more = printed + read, bool(read)
        elif ended:
            break
        elif runtime.monotonic() > deadline:
            return None
        elif not more:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_MS / 1000)
    return printed


def password_of(command: Sequence[str]) -> str:
    """Return the first line that it prints; raise as `output_of` does, or Transient."""
    line = output_of(command).partition(b"\n")[0].removesuffix(b"\r")
    try:
        password = line.decode()
    except UnicodeDecodeError:
        password = ""
    if not password or "\0" in password:
        raise Transient(
            f"password_command: {shlex.quote(command[0])} printed no password in its"
            " first line",
            hint="run the password_command by hand as walstream's user",
        )
    return password
