"""Turn into a server that cannot outlive whoever started it.

Run as a script between the parent and the server: changes the account, asks the kernel
for a signal at the parent's death, and becomes the server. Uses the standard library
alone, since it starts with -I -S and under whatever Python the parent runs.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def arguments(
    parent: int, death_signal: int, uid_gid: tuple[int, int] | None
) -> list[str]:
    """List what stands between this script's path and the server's command line."""
    account = f"{uid_gid[0]}:{uid_gid[1]}" if uid_gid else "-"
    return [str(parent), str(int(death_signal)), account]


def become(parent: int, death_signal: int, account: str, command: list[str]) -> None:
    """Run the command in place of this process; never returns."""
    if account != "-":
        uid, gid = (int(part) for part in account.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # after the change of account, which would clear it again
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        raise SystemExit("the parent died before its server started")
    # Python ignores these two, and what is ignored stays so in the server
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execv(command[0], command)  # noqa: S606 - there is no shell on purpose


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
