"""The command line of the consumer library; its verbs run in tests/integration."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from consumer import __main__ as command


def test_the_help_offers_tail_and_mirror(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "tail" in text
    assert "mirror" in text
    assert "Exit codes" in text


def test_a_mirror_without_a_target_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONSUMER_TARGET_DSN", raising=False)
    assert command.main(["mirror", "t", "--group", "g"]) == 2
    assert "CONSUMER_TARGET_DSN" in capsys.readouterr().err


def test_a_property_needs_its_value(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command.main(["tail", "t", "-X", "secret"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err
    assert command.main(["tail", "t", "--kafka-file", str(tmp_path / "none")]) == 2


def test_a_property_that_breaks_the_promise_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "kafka.properties"
    path.write_text("# theirs\n\nenable.auto.offset.store = true\n", "utf-8")
    assert command.main(["tail", "t", "--kafka-file", str(path)]) == 2
    assert "enable.auto.offset.store" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("dsn", "code"),
    [
        ("host=here secret", 2),
        ("prot=secret", 2),
        ("host=127.0.0.1 connect_timeout=secret", 2),
    ],
)
def test_a_dsn_that_cannot_be_used_is_told_without_its_text(
    capsys: pytest.CaptureFixture[str], dsn: str, code: int
) -> None:
    assert command.main(["mirror", "t", "--group", "g", "--target", dsn]) == code
    text = capsys.readouterr().err
    assert text.startswith("error: the target")
    assert text.count("\n") == 1
    assert "secret" not in text


@pytest.mark.parametrize(
    "dsn",
    [
        "host=127.0.0.1 port=1 password=secret",
        "postgresql://u:se@secret@127.0.0.1:1/db",
    ],
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_target_that_does_not_answer_is_told_and_waited_for(
    dsn: str, number: signal.Signals
) -> None:
    mirror = ("-m", "consumer", "mirror", "t", "--group", "g", "--target", dsn)
    with subprocess.Popen(
        [sys.executable, *mirror], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        told = [process.stderr.readline() for _ in range(2)]
        process.send_signal(number)
        text = "".join([*told, process.stderr.read()])
        assert process.wait(30) == 0, text
    assert "cannot be reached, trying again" in told[0]
    assert "secret" not in text


def test_less_than_one_connection_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for text in ("0", "-1", "many"):
        with pytest.raises(SystemExit):
            command.main(
                ["mirror", "t", "--group", "g", "--target", "x", "--connections", text]
            )
        assert "--connections" in capsys.readouterr().err
