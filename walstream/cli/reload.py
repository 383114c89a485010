"""`walstream reload`: the running instance reads its configuration again."""

from walstream.cli.config_file import load
from walstream.cli.options import ConfigFile
from walstream.cli.output import echo
from walstream.state import control
from walstream.state.control_message import ReloadRequest

_LONGEST_S = 60.0


def reload(file: ConfigFile = None) -> None:
    """Make the running instance read its configuration again, as SIGHUP does.

    A source whose configuration changed drains and restarts; the others continue. If
    the new configuration has an error, it is printed and nothing changes.

    Example: walstream reload -c walstream.toml
    """
    config = load(file)
    answer = control.ask_running(config, ReloadRequest(), _LONGEST_S)
    for line in answer.lines:
        echo(line)
    changes = ", ".join(answer.changes)
    echo(f"changed: {changes}" if changes else "nothing changed")
