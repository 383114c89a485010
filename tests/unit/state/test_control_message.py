"""Requests and answers come over the socket as they were, or are refused."""

import json

import pytest

from walstream.errors import ConfigError
from walstream.state.control_message import (
    AnyRequest,
    BackfillRequest,
    BorrowAnswer,
    BorrowRequest,
    DebugRequest,
    DoneAnswer,
    ErrorAnswer,
    FindRequest,
    PartRequest,
    PollRequest,
    ReloadAnswer,
    ReloadRequest,
    StatusRequest,
    answer_line,
    answer_of,
    request_line,
    request_of,
)
from walstream.telemetry.json_codec import loads

# what goes over the wire: another version is at the other end during an upgrade
REQUESTS: list[tuple[AnyRequest, dict[str, object]]] = [
    (StatusRequest(), {"do": "status"}),
    (ReloadRequest(), {"do": "reload"}),
    (DebugRequest(on=True), {"do": "debug", "on": True}),
    (BorrowRequest("app"), {"do": "borrow", "source": "app"}),
    (
        BackfillRequest("app", ("s.t",), replace=True),
        {"do": "backfill", "source": "app", "tables": ["s.t"], "replace": True},
    ),
    (
        PartRequest("app", ("s.t",), "id > 5"),
        {
            "do": "backfill-part",
            "source": "app",
            "tables": ["s.t"],
            "where": "id > 5",
        },
    ),
    (
        FindRequest("app", ("s.*",), where="id > 5"),
        {
            "do": "backfill-find",
            "source": "app",
            "tables": ["s.*"],
            "replace": False,
            "where": "id > 5",
        },
    ),
    (PollRequest("app"), {"do": "poll", "source": "app"}),
]


@pytest.mark.parametrize(("request_", "line"), REQUESTS)
def test_a_request_is_read_as_it_was_written(
    request_: AnyRequest, line: dict[str, object]
) -> None:
    assert request_line(request_) == json.dumps(line).encode() + b"\n"
    assert request_of(request_line(request_)) == request_
    assert request_of(json.dumps({**line, "new": 1}).encode()) == request_


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"{}",
        b'{"do": 5}',
        b'{"do": "explode"}',
        b'{"do": "debug"}',
        b'{"do": "debug", "on": "off"}',
        b'{"do": "borrow"}',
        b'{"do": "backfill", "source": "app", "tables": "s.t"}',
        b"[" * 4096,  # the longest that is read
    ],
)
def test_what_is_no_request_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever is wrong with it
        request_of(line)


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (ReloadAnswer(("memory",)), {"changes": ["memory"], "lines": []}),
        (BorrowAnswer("app"), {"lent": "app"}),
        (DoneAnswer(("app", 3)), {"asked": ["app", 3]}),
        (
            ErrorAnswer("the disk is full", 5),
            {"error": "the disk is full", "exit_code": 5},
        ),
    ],
)
def test_an_answer_is_read_as_it_was_written(
    answer: object, line: dict[str, object]
) -> None:
    assert loads(answer_line(answer)) == line
    assert answer_of(line, type(answer)) == answer


def test_an_error_stands_for_any_answer() -> None:
    found = answer_of({"error": "it is stopping"}, ReloadAnswer)
    assert found == ErrorAnswer("it is stopping", ConfigError.exit_code)
    with pytest.raises(ValueError, match="no 'lent'"):
        answer_of({}, BorrowAnswer)
