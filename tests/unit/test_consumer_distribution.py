"""The distribution walstream-consumer is made of walstream's own sources, and is whole.

`tests/fault/test_wheel_consumer.py` installs it.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.project.consumer_distribution import ALIAS, script
from tests.support.project.own_coverage import ROOT

VENDORED: Final = {
    *("walstream.errors", "walstream.lsn", "walstream.op", "walstream.row"),
    *("walstream.formats.op", "walstream.formats.plain", "walstream.formats.row"),
    *("walstream.pipeline.backoff", "walstream.telemetry.runtime"),
    "walstream.telemetry.throttle",
    "walstream.formats.debezium.calendar_text",
    "walstream.formats.debezium.composite_text",
    "walstream.formats.debezium.connect_value",
    "walstream.formats.debezium.decode",
    "walstream.formats.debezium.exact_numbers",
    "walstream.formats.debezium.float_digits",
    "walstream.formats.debezium.json_text",
    "walstream.formats.debezium.options",
    "walstream.formats.debezium.position",
    "walstream.formats.debezium.temporal",
    "walstream.formats.debezium.unavailable",
    "walstream.formats.encodings.avro.data",
    "walstream.formats.encodings.avro.reader",
    "walstream.formats.encodings.avro.schema_reader",
    "walstream.formats.encodings.avro.values",
    "walstream.formats.debezium.float_text",
    "walstream.formats.debezium.numeric",
    "walstream.formats.encodings.json_schema.conversion",
    "walstream.formats.encodings.json_schema.reader",
    "walstream.formats.encodings.json_schema.schema_reader",
    "walstream.formats.encodings.json_value",
    "walstream.formats.encodings.op.document",
    "walstream.formats.encodings.protobuf.data",
    "walstream.formats.encodings.protobuf.forms",
    "walstream.formats.encodings.protobuf.message",
    "walstream.formats.encodings.protobuf.message_reader",
    "walstream.formats.encodings.protobuf.primitive",
    "walstream.formats.encodings.protobuf.reader",
    "walstream.formats.encodings.protobuf.schema_reader",
    "walstream.formats.encodings.protobuf.values",
    "walstream.formats.encodings.readers",
    "walstream.formats.encodings.row.document",
    "walstream.formats.encodings.wire",
}
BOTH: Final = """
import sys
sys.modules["walstream"] = None  # there is none
import walstream_consumer.group.flow, consumer.group.flow, walstream_consumer.tail
assert sys.modules["consumer"] is sys.modules["walstream_consumer"]
flow = consumer.group.flow
assert flow is walstream_consumer.group.flow
assert flow.__spec__.name == flow.__name__ == "walstream_consumer.group.flow"
assert flow._log.name == "consumer.group.flow"
assert "consumer.tail" not in sys.modules
import consumer.tail
assert consumer.tail is walstream_consumer.tail
"""


@pytest.fixture(scope="module")
def stage() -> Any:
    return script()


@pytest.fixture(scope="module")
def staged(stage: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    stage.stage(folder)
    return folder


def python(
    *arguments: str, path: Sequence[Path], cwd: Path = ROOT
) -> "subprocess.CompletedProcess[str]":
    """Run Python far from the sources, with some folders of modules."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_a_module_of_walstream_that_it_needs_is_known(stage: Any) -> None:
    """Each is a copy in every application: a new one is a decision."""
    assert stage.vendored() == VENDORED


def test_both_names_are_one_package_without_walstream(
    staged: Path, tmp_path: Path
) -> None:
    done = python("-c", BOTH, path=[staged], cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["consumer", "walstream_consumer"])
def test_the_command_line_runs_by_both_names(
    staged: Path, tmp_path: Path, name: str
) -> None:
    for path, told in (([staged], "walstream_consumer"), ([ALIAS, ROOT], "consumer")):
        done = python("-m", name, "--help", path=path, cwd=tmp_path)
        assert done.stdout.startswith(f"usage: python -m {told} "), done.stderr


@pytest.mark.parametrize("name", ["consumer", "walstream_consumer"])
def test_a_module_runs_by_both_names(staged: Path, tmp_path: Path, name: str) -> None:
    for path in ([staged], [ALIAS, ROOT]):
        done = python("-m", f"{name}.tail", "--help", path=path, cwd=tmp_path)
        assert done.stdout.startswith("usage: python -m "), done.stderr
        assert done.returncode == 0
        assert not done.stderr


def test_in_the_sources_the_second_name_is_an_alias(tmp_path: Path) -> None:
    code = (
        "import walstream_consumer.group.flow, consumer.group.flow\n"
        "assert consumer is walstream_consumer\n"
        "assert consumer.group.flow.__spec__.name == 'consumer.group.flow'\n"
        "try: import walstream_consumer.nothing\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = python("-c", code, path=[ALIAS, ROOT], cwd=tmp_path)
    assert done.stdout == "No module named 'walstream_consumer.nothing'\n", done.stderr


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Put the sources as a wheel of walstream has them."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    for name in ("consumer", "walstream"):
        (folder / name).symlink_to(ROOT / name)
    alias = folder / "walstream_consumer.py"
    alias.write_text((ALIAS / alias.name).read_text("utf-8"), "utf-8")
    return folder


def test_a_program_may_be_called_consumer(installed: Path, tmp_path: Path) -> None:
    program = tmp_path / "consumer.py"
    program.write_text("from walstream_consumer import Op\nprint(Op.__module__)\n")
    done = python(str(program), path=[installed])
    assert done.stdout == "consumer.op\n", done.stderr


def test_another_module_of_that_name_is_told(installed: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "consumer.py"
    theirs.write_text("mine = True\n", "utf-8")
    code = "import consumer; assert consumer.mine; import walstream_consumer"
    done = python("-c", code, path=[installed], cwd=tmp_path)
    assert f"but consumer is {theirs}, which is imported already" in done.stderr


def test_a_filter_without_its_library_says_what_to_install(
    staged: Path, tmp_path: Path
) -> None:
    code = (
        "import sys; sys.modules['lmdb'] = None\n"
        "from walstream_consumer import SeenInLmdb; SeenInLmdb('seen')"
    )
    done = python("-c", code, path=[staged], cwd=tmp_path)
    assert "pip install 'walstream-consumer[lmdb]'" in done.stderr


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("import walstream.op", "import of walstream"),
        ("import structlog", "import of structlog"),
        ("import lmdb", "import of lmdb"),
        ("from . import op", "a relative import"),
        ("from importlib import import_module", "import of importlib"),
        ("op = __import__('walstream.op')", "__import__"),
        ("import sys; op = sys.modules['x']", "modules"),
        ("name = 'walstream.op'", "a string with walstream.op"),
        ("name = f'{1} consumer.group'", "a string with consumer.group"),
        ("name = __name__", "__name__"),
        ("path = __file__", "__file__"),
        ("from walstream.formats import ENCODERS", "ENCODERS is no module"),
        ("from  walstream.op import Kind", "no 'from walstream.op '"),
    ],
)
def test_what_it_cannot_change_is_refused(
    stage: Any, tmp_path: Path, line: str, why: str
) -> None:
    package = tmp_path / "consumer"
    package.mkdir()
    (tmp_path / "walstream").symlink_to(ROOT / "walstream")
    (package / "group").mkdir()
    (package / "one.py").write_text(f"'''walstream.op'''\n{line}\n", "utf-8")
    with pytest.raises(stage.Unexpected, match=rf"^consumer/one\.py:2: {why}"):
        stage.stage(tmp_path / "out", tmp_path)


def test_imports_and_loggers_are_changed_and_nothing_else(
    stage: Any, tmp_path: Path
) -> None:
    (tmp_path / "consumer").mkdir()
    (tmp_path / "consumer" / "one.py").write_text(
        "import logging\n"
        "from walstream.op import (\n    Kind,\n)  # walstream.op\n"
        "log = logging.getLogger(__name__)\n"
        "def of(consumer):\n"
        "    'from consumer.op'; from consumer.op import Op\n"
        "    return f'é consumer.on {Kind, Op}', __name__ == '__main__', consumer\n",
        "utf-8",
    )
    assert stage.rewritten(tmp_path, Path("consumer/one.py")) == (
        "import logging\n"
        "from walstream_consumer._walstream.op import (\n    Kind,\n)  # walstream.op\n"
        'log = logging.getLogger("consumer.one")\n'
        "def of(consumer):\n"
        "    'from consumer.op'; from walstream_consumer.op import Op\n"
        "    return f'é consumer.on {Kind, Op}', __name__ == '__main__', consumer\n"
    )
