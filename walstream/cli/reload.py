"""`walstream reload`: the running instance reads its configuration again."""

from pathlib import Path

from walstream import control
from walstream.cli.loading import load
from walstream.cli.options import ConfigFile
from walstream.cli.output import echo
from walstream.errors import ConfigError

_LONGEST_S = 60.0


def reload(file: ConfigFile = None) -> None:
    """Have the running instance read its configuration again, as SIGHUP does.

    A source whose part is another one drains and begins again; the others go on. What
    is wrong is said here, and then all goes on as before.

    Example: walstream reload -c walstream.toml
    """
    config = load(file)
    answer = control.ask(Path(config.state), {"do": "reload"}, _LONGEST_S)
    if answer is None:
        raise ConfigError(
            f"no walstream runs with the state in {config.state}",
            hint=f"{config.command('walstream run')} starts one",
        )
    for line in answer["lines"]:
        echo(line)
    changes = ", ".join(answer["changes"])
    echo(f"changed: {changes}" if changes else "nothing is different")
