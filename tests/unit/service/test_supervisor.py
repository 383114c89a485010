"""What a supervisor goes by when it reads its configuration again."""

from pathlib import Path

import pytest

from walstream import config as configuration
from walstream.cli.config_file import Again
from walstream.cli.run_end import RunEnd
from walstream.config import PostgresSource
from walstream.config.run_options import Options
from walstream.service.supervisor import Supervisor
from walstream.sources.report import ErrorReport
from walstream.state.control_message import ErrorAnswer, ReloadAnswer
from walstream.testing.servers.port import free_port

FILE = """
state = "{folder}/state"
{memory}
[http]
listen = "{listen}"
[sources.app]
kind = "postgres"
dsn = "host=/nowhere password=${{file:{folder}/password}}"
sinks = ["log"]
[sinks.log]
kind = "log"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    (tmp_path / "password").write_text("one")
    return tmp_path / "walstream.toml"


def write(file: Path, listen: str, memory: str = "") -> None:
    file.write_text(FILE.format(folder=file.parent, listen=listen, memory=memory))


def refused(supervisor: Supervisor) -> str:
    answer = supervisor.reload()
    assert isinstance(answer, ErrorAnswer)
    return answer.error


def heed_refusal(supervisor: Supervisor) -> None:
    """Make it read passwords anew, as when a server refuses one."""
    worker = supervisor._fleet.workers[0]  # noqa: SLF001
    worker.history.error = ErrorReport(error="28P01", final=True, renewable=True)
    worker.restarts.exit_code = 4
    supervisor._reloader.heed_refusals()  # noqa: SLF001


def test_a_file_that_was_refused_is_not_gone_by_when_passwords_are_read_anew(
    file: Path,
) -> None:
    write(file, "")
    reader = Again(configuration.WrittenConfig.read(file), {})
    supervisor = Supervisor(reader.references(), Options(), reader=reader)
    write(file, "nowhere.invalid:1", memory='memory = "64MiB"')
    assert "listen" in refused(supervisor)

    (file.parent / "password").write_text("two")
    heed_refusal(supervisor)
    source = supervisor._config.sources["app"]  # noqa: SLF001
    assert isinstance(source, PostgresSource)
    assert source.dsn.endswith("two")
    assert supervisor._config.memory != 64 << 20  # noqa: SLF001
    # what is asked for and taken is gone by from then on
    write(file, f"127.0.0.1:{free_port()}", memory='memory = "64MiB"')
    assert isinstance(supervisor.reload(), ReloadAnswer)
    heed_refusal(supervisor)
    assert supervisor._config.memory == 64 << 20  # noqa: SLF001
    supervisor._faces.close()  # noqa: SLF001


def test_one_that_stops_lends_nothing_and_reads_nothing(file: Path) -> None:
    write(file, "")
    reader = Again(configuration.WrittenConfig.read(file), {})
    supervisor = Supervisor(reader.references(), Options(), reader=reader)
    assert supervisor.lend("nobody").startswith("it has no such source")
    assert supervisor.lend("app") == ""
    assert supervisor.is_lent("app")
    supervisor.take_back("app")
    supervisor._signals.stops += 1  # noqa: SLF001 - as of SIGTERM
    assert supervisor.lend("app") == "it is stopping"
    assert refused(supervisor) == "it is stopping"
    assert supervisor.status().stopping


def test_a_reload_does_not_go_round_what_the_command_line_demands(file: Path) -> None:
    write(file, "")
    end = RunEnd("now")
    reader = Again(configuration.WrittenConfig.read(file), {}, end.check)
    supervisor = Supervisor(
        reader.references(), Options(until_lsn=end.lsn), reader=reader
    )
    sql = '[sources.s]\nkind = "sql"\nurl = "sqlite:////none"\nsinks = ["none"]\n'
    sql += '[sources.s.tables.t]\nprimary_key = "id"\n'
    sql += '[sinks.none]\nkind = "discard"\nformat = "row"\n'
    file.write_text(file.read_text() + sql)
    assert "'s' is not a postgres source" in refused(supervisor)
    assert list(supervisor._config.sources) == ["app"]  # noqa: SLF001
