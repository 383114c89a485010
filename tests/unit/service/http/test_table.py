"""A table has its heads, its roles, and nothing that is not escaped."""

from walstream.service.http.table import Cell, table

HOSTILE = '"><script>alert(1)</script>'


def test_names_keys_and_links_are_escaped() -> None:
    rows = [(HOSTILE, Cell(HOSTILE, href=HOSTILE), [Cell(HOSTILE, look="bad")])]
    html = table(HOSTILE, HOSTILE, ["Table", HOSTILE], rows, more=HOSTILE)
    assert "<script>" not in html
    assert html.count("&lt;script&gt;alert(1)") >= 8


def test_a_table_without_rows_is_nothing() -> None:
    assert table("k", "Tables", ["Table"], []) == ""


def test_a_figure_has_its_columns_name_and_what_is_not_known_a_dash() -> None:
    rows = [("a", "a", [Cell("7", right=True), Cell("", whole=True)])]
    html = table("k", "Tables", ["Table", "Rows", "Topic"], rows)
    assert '<td role="cell" class="number" data-of="Rows">' in html
    assert '<span data-k="k/a/1">-</span>' in html
    assert '<th scope="row" role="rowheader">a</th>' in html
