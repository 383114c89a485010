"""What a reader sees."""

import io

import pytest
from rich.console import Console

from walstream.cli.demo.screen import Screen, op_line, show_ms
from walstream.cli.demo.tally import Arrival, RowValues
from walstream.op import Kind, ReplicationOp, Table

WIDTH = 100


def arrival(
    kind: Kind,
    before: RowValues | None,
    after: RowValues | None,
    *,
    latency_ms: float = 12,
    repeated: bool = False,
) -> Arrival:
    table = Table("shop", "products", ("sku", "name", "note"))
    return Arrival(
        op=ReplicationOp(kind, table, 1, 0),
        key=("A-1",),
        before=before,
        after=after,
        committed_ms=0,
        latency_ms=latency_ms,
        repeated=repeated,
        first_of_producer=False,
    )


def row(**changed: str | None) -> RowValues:
    return {"sku": "A-1", "name": "lamp", "note": "x" * 8000, **changed}


def line(shown: Arrival) -> str:
    return op_line(shown, WIDTH).plain


def test_update_shows_what_changed_and_nothing_else() -> None:
    shown = line(arrival(Kind.UPDATE, row(), row(name=None)))
    assert "name lamp → NULL" in shown
    assert "note" not in shown


def test_long_text_is_cut_and_measured() -> None:
    shown = line(arrival(Kind.INSERT, None, row()))
    assert "8 kB" in shown
    assert "x" * 20 not in shown


def test_line_is_as_wide_as_the_screen_with_the_latency_last() -> None:
    shown = line(arrival(Kind.DELETE, row(name="n" * 79), None))
    assert len(shown) <= WIDTH
    assert shown.endswith(" 12 ms")


def test_repeat_is_called_one() -> None:
    assert "repeat" in line(arrival(Kind.DELETE, None, None, repeated=True))


@pytest.mark.parametrize(
    ("milliseconds", "shown"), [(0.4, "0 ms"), (12.3, "12 ms"), (1740, "1.7 s")]
)
def test_latency_is_short(milliseconds: float, shown: str) -> None:
    assert show_ms(milliseconds) == shown


def test_screen_that_is_no_terminal_gets_plain_lines_one_at_a_time() -> None:
    out = io.StringIO()
    screen = Screen(Console(file=out, highlight=False))
    many = [arrival(Kind.DELETE, row(), None)] * 50
    with screen.watching():
        screen.show(many)
        screen.show(many)
        screen.status("[green]●[/] streaming")
    assert out.getvalue().count("delete") == 1
    assert "\x1b" not in out.getvalue()
    assert "● streaming" in out.getvalue()


def test_step_that_failed_is_not_ticked_off() -> None:
    out = io.StringIO()
    screen = Screen(Console(file=out, highlight=False))
    with pytest.raises(RuntimeError), screen.step("Kafka started"):
        raise RuntimeError
    assert "Kafka" not in out.getvalue()
