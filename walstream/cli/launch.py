"""The composition root: configuration -> a supervisor of one worker for each source."""

import sys

import structlog

from walstream.config import Config
from walstream.config.run_options import Options
from walstream.service import feature_support
from walstream.service.config_changes import ConfigReader
from walstream.service.supervisor import Supervisor

_log = structlog.get_logger()


def run(config: Config, options: Options, reader: ConfigReader | None = None) -> int:
    """Run all sources until they end; give the process's exit code.

    With a `reader` the configuration can be read again meanwhile.
    """
    feature_support.refuse_unsupported(config)
    for risk in feature_support.risks(config):
        _log.warning(risk.what, key=risk.key)
    if not sys.stderr.isatty():
        return Supervisor(config, options, reader=reader).run()
    from rich.console import Console  # noqa: PLC0415 - for somebody who looks on

    from walstream.cli.progress_bar import Bars  # noqa: PLC0415 - likewise

    bars = Bars(Console(stderr=True))
    try:
        return Supervisor(config, options, bars.show, reader).run()
    finally:
        bars.close()
