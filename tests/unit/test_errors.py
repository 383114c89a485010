"""What an error tells the operator and the supervisor."""

import pytest

from walstream import errors
from walstream.errors import (
    RETRIED,
    DecodeError,
    PermissionLacking,
    Transient,
    WalstreamError,
)


@pytest.mark.parametrize(
    ("kind", "exit_code", "retryable"),
    [
        (errors.WalstreamError, 1, False),
        (errors.ConfigError, 2, False),
        (errors.HistoryError, 3, False),
        (errors.SlotLost, 3, False),
        (errors.PublicationLost, 3, False),
        (errors.TopicLost, 3, False),
        (errors.TopicMissing, 2, False),
        (errors.RecordRefused, 3, False),
        (errors.StateDamaged, 3, False),
        (errors.PermissionLacking, 4, False),
        (errors.Transient, 5, True),
        (errors.Restart, 5, True),
    ],
)
def test_exit_code_and_retry_belong_to_the_kind(
    kind: type[WalstreamError], exit_code: int, retryable: bool
) -> None:
    assert (kind.exit_code, kind.retryable) == (exit_code, retryable)


def test_hint_follows_on_a_line_of_its_own() -> None:
    assert str(WalstreamError("what", hint="do this")) == "what\n  do this"
    assert str(WalstreamError("what")) == "what"


def test_decode_error_names_tag_and_offset() -> None:
    error = DecodeError("text is not UTF-8", tag="I", offset=12)
    assert "'I': text is not UTF-8 at byte 12" in str(error)
    assert (error.reason, error.tag, error.offset) == ("text is not UTF-8", "I", 12)
    assert error.exit_code == 1


def test_a_process_that_ends_promises_no_other_try() -> None:
    error = Transient("no answer", hint=f"{RETRIED}; walstream check says more")
    assert RETRIED in str(error)
    assert error.final() == (
        "no answer\n  run the command again when it answers; walstream check says more"
    )
    assert error.final_hint == error.final().splitlines()[1].strip()
    assert PermissionLacking("no right", hint="grant it").final().endswith("grant it")
