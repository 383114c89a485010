"""Giving a source up: its slot, its publications and its state are dropped, in order.

The state goes last, and at once: after a crash in between, the same command finds what
is left, and still knows what was to stay.
"""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from walstream.admin.teardown import Teardown, aside_of, planned
from walstream.config import Config
from walstream.errors import ConfigError, Repair, Transient, WalstreamError
from walstream.postgres import publication, quoting
from walstream.postgres import slot as slots
from walstream.postgres.connection import Connection, translated
from walstream.state.lock import FolderLock, holder


def destroy(
    config: Config,
    name: str,
    consent: Callable[[Teardown], bool],
    *,
    adopt: bool = False,
) -> Teardown | None:
    """Drop all that a source made for itself; return what was dropped.

    A slot that no state claims stays, unless `adopt` says that it is the source's.
    `consent` is asked first; None: it refused. Raises Transient while an instance runs
    on the state, another one reads a slot, or what it agreed to changed meanwhile;
    HistoryError for the slots of another server. A second call finds nothing to drop.
    """
    state = Path(config.state)
    config.source(name)
    _refuse_running(state, name)
    with planned(config, name, adopt=adopt) as (shown, _):
        pass  # no session waits for a person
    if shown.empty:
        return shown
    if not consent(shown):
        return None
    lock = FolderLock(state)
    lock.acquire()
    try:
        with planned(config, name, adopt=adopt) as (teardown, connection):
            _refuse_changed(config, shown, teardown)
            if connection is not None:
                again = config.command(f"walstream destroy {name}")
                _drop(connection, teardown, again)
        _forget(state / name)
    finally:
        lock.release()
    return teardown


def _refuse_running(state: Path, name: str) -> None:
    if (process := holder(state)) is not None:
        raise Transient(
            f"walstream runs on this state as process {process}: source {name!r} cannot"
            " be destroyed under it",
            hint=f"stop it first: kill {process}",
        )


def _refuse_changed(config: Config, shown: Teardown, found: Teardown) -> None:
    if changed := found.changes(shown):
        again = config.command(f"walstream destroy {shown.source}")
        raise Transient(
            f"source {shown.source!r} changed after it was shown"
            f" ({', '.join(changed)}): nothing was dropped",
            hint=f"see what is dropped now: {again}",
            repair=Repair(command=again),
        )


def _drop(connection: Connection, teardown: Teardown, again: str) -> None:
    """Drop what the server has; the slot first, since it holds WAL.

    An error says what is dropped already: the repeat drops the rest.
    """
    own = [teardown.slot.name] if teardown.slot else []
    done: list[str] = []
    try:
        with translated("asking PostgreSQL"):
            for one in (*own, *teardown.copies):
                slots.drop(connection, one)
                done.append(f"slot {one}")
            for one in teardown.publications:
                statement = f"DROP PUBLICATION IF EXISTS {quoting.name(one)};"
                publication.execute(connection, statement)
                done.append(f"publication {one}")
    except WalstreamError as error:
        if not done:
            raise
        raise type(error)(
            f"{error.args[0]}: dropped already: {', '.join(done)}",
            hint=f"what is left is dropped by: {again}",
            repair=error.repair,
        ) from None


def _forget(folder: Path) -> None:
    """Delete a source's part of the state; none there is fine.

    It is renamed first: half of it would be read as a state that knows nothing.
    """
    aside = aside_of(folder)
    try:
        _delete(aside)
        if folder.is_dir():
            folder.rename(aside)
            _delete(aside)
    except OSError as error:
        every = [each for one in (aside, folder) for each in (one, one.resolve())]
        left = [shlex.quote(str(one)) for one in dict.fromkeys(every) if one.exists()]
        raise ConfigError(
            f"the state folder {folder} cannot be deleted: {error.strerror or error}",
            hint=f"all else is done; delete it yourself: rm -r {' '.join(left)}",
        ) from None


def _delete(folder: Path) -> None:
    """Delete a folder; of a symbolic link, what it leads to goes first."""
    if folder.is_symlink():
        if (target := folder.resolve()).is_dir():
            shutil.rmtree(target)
        folder.unlink()
    elif folder.is_dir():
        shutil.rmtree(folder)
