"""An address that is taken is known before `run` asks for it."""

from pathlib import Path

import pytest

from walstream.admin.check.http import inspect
from walstream.config import Config
from walstream.finding import Severity
from walstream.service.http.socket import listen, said
from walstream.state.lock import FolderLock


def config(folder: Path, **http: str) -> Config:
    return Config.model_validate({"state": str(folder), "http": http})


def test_a_written_address_that_is_taken_ends_run_with_2(tmp_path: Path) -> None:
    (taken,) = listen("127.0.0.1:0")
    wanted = config(tmp_path, listen=said(taken))
    with taken:
        (found,) = inspect(wanted)
        assert (found.code, found.severity) == ("http-listen", Severity.STOP)
        assert found.exit_code == 2
        assert said(taken) in found.what
        assert "another port" in found.why
    assert not list(inspect(wanted))
    assert not list(inspect(wanted))  # nor is it held by who looks


def test_the_address_of_probes_is_looked_at_too(tmp_path: Path) -> None:
    (taken,) = listen("127.0.0.1:0")
    with taken:
        (found,) = inspect(config(tmp_path, listen="", probes=said(taken)))
        assert found.exit_code == 2
        assert found.what.startswith(f"http.probes: {said(taken)} is not available")


def test_one_that_nobody_wrote_only_switches_http_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (taken,) = listen("127.0.0.1:0")
    unwritten = config(tmp_path)
    monkeypatch.setitem(unwritten.http.__dict__, "listen", said(taken))
    with taken:
        (found,) = inspect(unwritten)
    assert (found.severity, found.exit_code) == (Severity.WARNING, 0)
    assert "without page" in found.why


def test_an_instance_that_runs_here_has_its_own_address(tmp_path: Path) -> None:
    (taken,) = listen("127.0.0.1:0")
    lock = FolderLock(tmp_path)
    lock.acquire()
    with taken:
        assert not list(inspect(config(tmp_path, listen=said(taken))))
    lock.release()


def test_none_is_looked_at_where_none_is_wanted(tmp_path: Path) -> None:
    assert not list(inspect(config(tmp_path, listen="")))
