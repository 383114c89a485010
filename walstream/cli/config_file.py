"""The configuration of a command, loaded as the user who owns the state.

A package's state belongs to a user of its own. What root wrote there the running
instance could not read, and what root may read tells nothing of what it may.
"""

import os
import pwd
from collections.abc import Callable, Mapping
from pathlib import Path

from walstream import config as configuration
from walstream.config import Config, WrittenConfig
from walstream.config.trust import refuse_strangers_folder


def load(file: Path | None) -> Config:
    """Load the configuration; then give root up for the owner of the state."""
    config = configuration.load(file)
    give_root_up(config, file)
    return config


def give_root_up(config: Config, file: Path | None) -> None:
    """Go on as the owner of the state, of whom nobody else made one.

    Secrets are read before that: their files may be root's alone. So it has to be the
    operator's choice whose state it is, not that of who could put a folder there.
    """
    if file is None or os.geteuid() == 0:
        refuse_strangers_folder(Path(config.state), file)
    become_owner(Path(config.state))


class Again:
    """A configuration that can be read again, with what the command line says."""

    def __init__(
        self,
        written: WrittenConfig,
        overrides: Mapping[str, object],
        check: Callable[[Config], object] = lambda _: None,
    ) -> None:
        """`check` raises ConfigError for what does not go with the command line."""
        self._written = written  # that all goes by
        self._read = written
        self._overrides = dict(overrides)
        self._check = check

    def whole(self) -> Config:
        """Read the file, and what it refers to."""
        self._read = self._written.again()
        return self._overridden(self._read)

    def references(self) -> Config:
        """Read what it refers to, as the file was when it was last kept."""
        self._read = self._written
        return self._overridden(self._read)

    def keep(self) -> None:
        """Make `references` go by the file as it was read last: all goes by it."""
        self._written = self._read

    def _overridden(self, written: WrittenConfig) -> Config:
        config = written.config().model_copy(update=self._overrides)
        self._check(config)
        return config


def become_owner(folder: Path) -> None:
    """Go on as the user whom the folder belongs to, for good; only root can."""
    if os.geteuid() != 0:
        return
    try:
        found = folder.stat()
    except OSError:  # not made yet, or what cannot be: who opens it says why
        return
    if found.st_uid == 0:
        return
    try:
        user = pwd.getpwuid(found.st_uid)
    except KeyError:  # a number without a name: of a container, say
        os.setgroups([])
        os.setgid(found.st_gid)
    else:
        os.initgroups(user.pw_name, user.pw_gid)
        os.setgid(user.pw_gid)
        # libpq and librdkafka look for files there, and stop at one they may not see
        os.environ["HOME"] = user.pw_dir
    os.setuid(found.st_uid)
