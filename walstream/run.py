"""The composition root: configuration -> a supervisor of one worker for each source."""

from dataclasses import asdict
from typing import Any

import structlog
from rich.console import Console

from walstream import supported
from walstream.bars import Bars
from walstream.config import Config
from walstream.supervisor import Supervisor

_log = structlog.get_logger()


def run(config: Config, options: Any) -> int:
    """Run all sources until they end; give the process's exit code."""
    supported.refuse_unsupported(config)
    for risk in supported.risks(config):
        _log.warning(risk.what, key=risk.key)
    console = Console(stderr=True)
    if not console.is_terminal:
        return Supervisor(config, asdict(options)).run()
    bars = Bars(console)
    try:
        return Supervisor(config, asdict(options), bars.show).run()
    finally:
        bars.close()
