"""`walstream demo`: see it work, on servers that are gone afterwards."""

import logging
import secrets
import signal
import sys
from typing import Annotated

import typer

from walstream.cli.output import echo_error
from walstream.errors import ConfigError, WalstreamError
from walstream.testing.servers.process import unwind_on_sigterm

_FAILED = 1
_INTERRUPTED = 130


def demo(
    *,
    seconds: Annotated[
        float,
        typer.Option(min=3, metavar="SECONDS", help="How long changes are shown."),
    ] = 20.0,
    rate: Annotated[
        float,
        typer.Option(
            min=1, max=5000, metavar="NUMBER", help="Transactions per second."
        ),
    ] = 200.0,
    seed: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="Repeat the load of an earlier demo."),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep the servers running until Enter or Ctrl-C."),
    ] = False,
) -> None:
    """Show a small shop streamed from PostgreSQL to Kafka, with a crash in the middle.

    Starts temporary servers, needs no configuration, and leaves nothing behind.

    Example: walstream demo --seconds 60
    """
    from walstream.cli.demo.run import DemoOptions, play  # noqa: PLC0415 - other verbs need none of it
    from walstream.cli.demo.screen import Screen  # noqa: PLC0415 - likewise

    unwind_on_sigterm()
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # unless under nohup
        signal.signal(signal.SIGHUP, lambda number, _: sys.exit(128 + number))
    for library in ("librdkafka", "psycopg"):  # the demo says itself what ended
        logging.getLogger(library).addHandler(logging.NullHandler())
    screen = Screen()
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    try:
        code = play(
            DemoOptions(seconds=seconds, rate=rate, seed=seed, keep=keep), screen
        )
    except ConfigError as error:
        hint = f": {error.hint}" if error.hint else ""
        echo_error(f"{error.args[0]}{hint}")
        code = error.exit_code
    except WalstreamError as error:
        # its hint is for those who can try again: these servers are gone
        echo_error(error.args[0])
        code = _FAILED
    except KeyboardInterrupt:
        screen.say("\nended; nothing is left behind")
        code = 0 if keep else _INTERRUPTED
    raise typer.Exit(code)
