"""What a process loads before it needs it: a stream pays for no poll or backfill.

Nor does a supervisor for the libraries of servers, which its workers alone ask.
"""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

_SERVERS = {"psycopg", "confluent_kafka", "lmdb"}
_LATE = {
    *("pyspark", "py4j", "sqlalchemy", "pymysql"),
    *("starlette", "uvicorn", "prometheus_client"),
}
_CONFIG = """
state = "state"
[http]
listen = "127.0.0.1:{port}"
[sources.app]
kind = "postgres"
dsn = "postgresql://127.0.0.1:1/nobody-listens-here"
insecure = true
sinks = ["lines"]
[sinks.lines]
kind = "log"
"""
_RUN = """
import os, signal, sys, threading, time, urllib.request
def look():
    for path in ("/status", "/stats", "/metrics", "/"):
        for _ in range(1200):
            try:
                urllib.request.urlopen("http://127.0.0.1:{port}" + path).read()
                break
            except urllib.error.HTTPError:
                break  # it is red
            except OSError:
                time.sleep(0.05)
        else:
            sys.stderr.write(path + " is not answered")
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=look, daemon=True).start()
sys.argv = ["walstream", "run"]
from walstream.cli.main import main
try:
    main()
finally:
    print(sorted({modules} & sys.modules.keys()))
"""


@pytest.mark.parametrize(
    ("module", "late"),
    [
        ("walstream.service.worker", _LATE),
        ("walstream.sources.postgres.runner", _LATE),
        ("walstream.cli.main", _LATE | _SERVERS),
        ("walstream.cli.run", _LATE | _SERVERS),
        ("walstream.service.http.server", _SERVERS),
    ],
)
def test_no_large_library_is_loaded_before_it_is_needed(
    module: str, late: set[str]
) -> None:
    code = f"import sys, {module}; print(sorted({late} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_supervisor_that_runs_and_answers_loads_no_servers_library(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    (tmp_path / "walstream.toml").write_text(_CONFIG.format(port=port))
    modules = {
        *_SERVERS,
        "pyspark",
        "sqlalchemy",
        "rich",
        "walstream.service.http.server",
    }
    done = subprocess.run(
        [sys.executable, "-c", _RUN.format(port=port, modules=modules)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert "is not answered" not in done.stderr
    assert done.stdout == "['walstream.service.http.server']\n", done.stderr


def test_a_workers_process_loads_no_rich() -> None:
    command = (
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "walstream.service.worker_main",
    )
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert {"structlog.dev", "walstream.config"} <= loaded
    assert "rich.console" not in loaded
