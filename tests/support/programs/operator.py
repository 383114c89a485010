"""An operator at a shell: runs `walstream check`, and what it prints, as it stands."""

import json
import os
import pty
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream, toml
from walstream.spark.java import (
    find_java,
)
from walstream.testing.servers.jars import kafka_class_path

ROOT: Final = Path(__file__).parents[3]
_BIN: Final = Path(sys.executable).parent
_TOOLS: Final = "tests.support.servers.kafka_tools"
_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

Report = dict[str, Any]
"""What `walstream check --json` prints."""


@dataclass
class Operator:
    """One with the tools of walstream and of Kafka on the PATH."""

    folder: Path  # where the commands are run

    def __post_init__(self) -> None:
        tools = self.folder / "bin"
        tools.mkdir(parents=True)
        jars = ":".join(map(str, kafka_class_path()))
        configs = f"{find_java()} {_JAVA} -cp {jars} kafka.admin.ConfigCommand"
        own = f"env PYTHONPATH={ROOT} {sys.executable} -m {_TOOLS}"
        for name, command in {
            "kafka-configs.sh": configs,
            "kafka-topics.sh": f"{own} topics",
            "kafka-acls.sh": f"{own} acls",
        }.items():
            file = tools / name
            file.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            file.chmod(file.stat().st_mode | stat.S_IXUSR)
        self._path = f"{tools}:{_BIN}:{os.environ['PATH']}"

    def run(self, command: str, *, says: str = "") -> str:
        """Run what was printed, in a shell at a terminal; claim that it ends with 0."""
        master, terminal = pty.openpty()
        try:
            os.write(master, says.encode())
            ended = subprocess.run(
                ["bash", "-e", "-c", command],
                cwd=self.folder,
                env={**os.environ, "PATH": self._path},
                stdin=terminal,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
        finally:
            os.close(master)
            os.close(terminal)
        said = ended.stdout + ended.stderr
        assert ended.returncode == 0, f"{command}\n{said}"
        return said

    def check(self, walstream: Walstream) -> Report:
        """Check the configuration as it would be run now."""
        walstream.configuration.write_text(toml(walstream.document()), "utf-8")
        ended = checked("--json", "-c", walstream.configuration)
        assert ended.returncode in range(6), ended.stderr
        report: Report = json.loads(ended.stdout)
        assert report["exit_code"] == ended.returncode
        assert report["ok"] == (ended.returncode == 0)
        assert not ended.stderr
        return report


def checked(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run `walstream check` in a pipe."""
    return verb(None, "check", *map(str, arguments))


def findings(report: Report) -> list[dict[str, Any]]:
    """List all of a report, whatever they are of."""
    sources = (one for source in report["sources"] for one in source["findings"])
    return [*report["findings"], *sources]


def codes(report: Report) -> set[str]:
    return {one["code"] for one in findings(report)}


def found(report: Report, code: str) -> dict[str, Any]:
    """Give the one finding of this code."""
    those = [one for one in findings(report) if one["code"] == code]
    assert len(those) == 1, findings(report)
    return those[0]
