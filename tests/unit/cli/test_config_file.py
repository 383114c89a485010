"""Root acts on a state as the user whom it belongs to; nobody else becomes another."""

import os
import subprocess
import sys
from pathlib import Path

CHILD = """
import os, sys
from pathlib import Path
from walstream.cli.config_file import become_owner
become_owner(Path(sys.argv[1]))
print(os.geteuid(), os.getegid(), os.getgroups(), os.environ["HOME"])
"""
NOBODY, NAMELESS = 65534, 54321


def after(folder: Path) -> str:
    """Tell who a process is that has become its owner."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": "/root"},
    )
    return done.stdout.strip()


def mine() -> str:
    return f"{os.geteuid()} {os.getegid()} {os.getgroups()} /root"


def given_to(number: int, folder: Path) -> bool:
    """Give a folder away, as only root can; False: it stays ours."""
    if os.geteuid() != 0:
        return False
    os.chown(folder, number, number)
    return True


def test_root_goes_on_as_the_owner_of_the_state(tmp_path: Path) -> None:
    given = given_to(NOBODY, tmp_path)
    expected = f"{NOBODY} {NOBODY} [{NOBODY}] /nonexistent" if given else mine()
    assert after(tmp_path) == expected


def test_an_owner_without_a_name_will_do(tmp_path: Path) -> None:
    given = given_to(NAMELESS, tmp_path)
    expected = f"{NAMELESS} {NAMELESS} [] /root" if given else mine()
    assert after(tmp_path) == expected


def test_a_state_of_ones_own_or_none_yet_changes_nobody(tmp_path: Path) -> None:
    assert after(tmp_path) == mine()
    assert after(tmp_path / "missing") == mine()
    (tmp_path / "file").touch()
    assert after(tmp_path / "file" / "state") == mine()


CONFIGURATION = """
[sources.app]
kind = "postgres"
dsn = "dbname=app password=${file:secret}"
sinks = ["kafka"]
[sinks.kafka]
kind = "kafka"
producer = { "bootstrap.servers" = "localhost:9092" }
"""


def loaded(folder: Path, file: str) -> str:
    """Load as a verb does; say who one is then, or why not."""
    child = f"""
import os
from pathlib import Path
from walstream.cli.config_file import load
from walstream.errors import ConfigError
try:
    load({file})
except ConfigError as error:
    print(error)
else:
    print(os.geteuid())
"""
    return subprocess.run(
        [sys.executable, "-P", "-c", child],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
    ).stdout.strip()


def test_in_a_strangers_folder_root_reads_nothing_and_becomes_nobody(
    tmp_path: Path,
) -> None:
    """A command is refused there, until the file is named.

    GIVEN a folder of somebody else, whose file names one that root alone reads
    WHEN root runs a command there
    THEN it ends before anything is read.
    """
    tmp_path.chmod(0o777)
    file, state = tmp_path / "walstream.toml", tmp_path / "state"
    file.write_text(CONFIGURATION)
    (tmp_path / "secret").write_text("of-root")
    state.mkdir()
    assert loaded(tmp_path, "None") == str(os.geteuid())
    if not given_to(NOBODY, state):
        return
    # its own file, and a state that a stranger put beside it
    said = loaded(tmp_path, "None")
    assert f"state folder {state} belongs to nobody ({NOBODY})" in said
    assert "sudo -u nobody walstream" in said
    assert "state folder" in loaded(tmp_path, "Path('walstream.toml')")
    given_to(NOBODY, file)
    said = loaded(tmp_path, "None")
    assert f"{file} belongs to nobody ({NOBODY})" in said
    assert "-c ./walstream.toml" in said
    assert loaded(tmp_path, "Path('walstream.toml')") == str(NOBODY)
