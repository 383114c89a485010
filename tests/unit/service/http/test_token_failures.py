"""Wrong tokens hold up nobody but who shows them."""

import asyncio

import pytest
from structlog.testing import capture_logs

from walstream.service.http import token_failures
from walstream.service.http.token_failures import MOST, WrongTokens


def test_few_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_failures, "DELAY_S", 3600.0)
    made = WrongTokens()

    async def come() -> None:
        waiting = [asyncio.ensure_future(made.one("a")) for _ in range(MOST)]
        await asyncio.sleep(0)
        await asyncio.wait_for(made.one("b"), 10)  # at once
        assert not any(one.done() for one in waiting)
        for one in waiting:  # they left
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        late = asyncio.ensure_future(made.one("c"))
        await asyncio.sleep(0)
        assert not late.done()
        late.cancel()

    asyncio.run(come())
    assert made.count == MOST + 2


def test_they_are_told_of_once_a_minute_with_their_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(token_failures, "DELAY_S", 0.0)
    clock = iter((0.0, 1.0, 60.0, 61.0, 200.0))
    made = WrongTokens(lambda: next(clock))
    with capture_logs() as log:
        made.tell()
        for count in (2, 3, 1, 0):
            for _ in range(count):
                asyncio.run(made.one("10.1.2.3"))
            made.tell()
    assert [(one["count"], one["last_from"]) for one in log] == [
        (2, "10.1.2.3"),
        (4, "10.1.2.3"),
    ]
    assert {one["log_level"] for one in log} == {"warning"}
