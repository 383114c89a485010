"""Whose files are believed where nobody named them, as git's safe.directory.

A configuration says which files are read and which servers are told what is in them,
and root reads every file. So what merely lies in the folder where a command is run is
taken from its user and from root alone; `-c` names what is meant all the same.
"""

import grp
import os
import pwd
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from walstream.errors import ConfigError


def refuse_strangers_file(path: Path) -> None:
    """Raise ConfigError for a file that another user wrote or may write."""
    # a link is its maker's word, whoever owns what it leads to
    link, found = path.lstat(), path.stat()
    name = shlex.quote(f"./{path}" if not path.is_absolute() else str(path))
    owner = next((s.st_uid for s in (link, found) if not _is_ours(s.st_uid)), None)
    if owner is not None:
        raise ConfigError(
            f"{path.absolute()} belongs to {user_name(owner)}, and a configuration of "
            "another user is read only if you name it",
            hint=f"look at it; if it is the one you want: -c {name}",
        )
    if _others_write(found):
        raise ConfigError(
            f"{path.absolute()} can be written by others (mode {_mode(found)}), and "
            "such a configuration is read only if you name it",
            hint=f"chmod go-w {name}, or, if it is the one you want: -c {name}",
        )


def refuse_strangers_folder(folder: Path, file: Path | None) -> None:
    """Raise ConfigError for a folder that a stranger may have put in its place.

    `file` is the named configuration: what is in it is believed of its own owner's
    folder.
    """
    try:
        owner = folder.stat().st_uid
        if _is_ours(owner) or (file is not None and file.stat().st_uid == owner):
            return
        doubtful = next(_doubtful(folder, owner), None)
    except OSError:  # not made yet, or what cannot be: who opens it says why
        return
    if doubtful is None:
        return
    raise ConfigError(
        f"state folder {folder} belongs to {user_name(owner)}, and another user may "
        f"have put it there: {doubtful}",
        hint="if it is the one you want, run the command as that user: sudo -u "
        f"{shlex.quote(_sudo_name(owner))} walstream ... -c FILE; else name "
        "another one in `state`, or chown it",
    )


def user_name(number: int) -> str:
    """Return who it is: "app (1000)"; the number alone where it has no name."""
    try:
        return f"{pwd.getpwuid(number).pw_name} ({number})"
    except KeyError:
        return f"user {number}"


def _sudo_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"#{number}"


def _is_ours(owner: int) -> bool:
    return owner in {0, os.geteuid()}


def _doubtful(folder: Path, owner: int) -> Iterator[str]:
    """Name the folders above, and links, that let a stranger choose this one."""
    written, real = Path(os.path.abspath(folder)), folder.resolve()  # noqa: PTH100 - with its links
    links = [path for path in (written, *written.parents) if path.is_symlink()]
    for path in {*links, *written.parents, *real.parents}:
        found = path.lstat()
        if not _is_ours(found.st_uid) and found.st_uid != owner:
            yield f"{path} belongs to {user_name(found.st_uid)}"
        elif not stat.S_ISLNK(found.st_mode) and _others_write(found):
            yield f"others may write in {path}"


def _others_write(found: os.stat_result) -> bool:
    """Return whether its owner is not the only one; a sticky bit helps the first."""
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _is_private(found)


def _is_private(found: os.stat_result) -> bool:
    """Return whether its group is its owner's alone, as umask 002 takes for granted."""
    if found.st_gid == 0:
        return True
    try:
        owner, group = pwd.getpwuid(found.st_uid), grp.getgrgid(found.st_gid)
    except KeyError:
        return False
    return group.gr_name == owner.pw_name and set(group.gr_mem) <= {owner.pw_name}


def _mode(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):04o}"
