"""The composition root: configuration -> a supervisor of one worker for each source."""

import sys

import structlog

from walstream.config import Config
from walstream.config.run_options import Options
from walstream.service import feature_support
from walstream.service.config_changes import ConfigReader
from walstream.service.supervisor import Supervisor, TerminalWatch
from walstream.telemetry import logs

_log = structlog.get_logger()


def run(config: Config, options: Options, reader: ConfigReader | None = None) -> int:
    """Run all sources until they end; give the process's exit code.

    With a `reader` the configuration can be read again meanwhile.
    """
    feature_support.refuse_unsupported(config)
    if not sys.stderr.isatty():
        _warn(config)
        return Supervisor(config, options, reader=reader).run()
    from walstream.cli.live.screen import RunScreen  # noqa: PLC0415 - rich takes a while

    with RunScreen(config.command) as screen:
        # once more: standard error is a pipe now, which all write JSON into
        logs.configure(config.log_level, config.secrets.scrub)
        _warn(config)
        watch = TerminalWatch(screen.show, screen.terminal)
        return Supervisor(config, options, watch, reader).run()


def _warn(config: Config) -> None:
    for risk in feature_support.risks(config):
        _log.warning(risk.what, key=risk.key)
