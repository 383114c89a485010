"""Points, PostGIS and pgvector."""

import pytest

from walstream.formats.debezium import spatial


def test_a_point_is_x_y_and_wkb() -> None:
    assert spatial.point("(1.5,2)") == (
        '{"x":1.5,"y":2.0,"wkb":"AQEAAAAAAAAAAAD4PwAAAAAAAABA","srid":null}'
    )


@pytest.mark.parametrize(
    ("hexadecimal", "wkb", "srid"),
    [
        (
            "0101000020E6100000000000000000F03F0000000000000040",
            "AQEAACDmEAAAAAAAAAAA8D8AAAAAAAAAQA==",
            "4326",
        ),
        (
            "0101000000000000000000F03F0000000000000040",
            "AQEAAAAAAAAAAADwPwAAAAAAAABA",
            "null",
        ),
        (
            "0020000001000010E63FF00000000000004000000000000000",
            "ACAAAAEAABDmP/AAAAAAAABAAAAAAAAAAA==",
            "4326",
        ),
    ],
)
def test_a_geometry_is_its_ewkb_and_srid(hexadecimal: str, wkb: str, srid: str) -> None:
    assert spatial.geometry(hexadecimal) == f'{{"wkb":"{wkb}","srid":{srid}}}'


def test_vectors_are_arrays_of_numbers() -> None:
    assert spatial.vector("[1,2.5,-3e-05]") == "[1.0,2.5,-3.0E-5]"
    assert spatial.half_vector("[1,0.33325195]") == "[1.0,0.33325195]"
    sparse = spatial.sparse_vector(pytest.fail)
    assert sparse("{1:1.5,3:2}/5") == '{"dimensions":5,"vector":[[1,1.5],[3,2.0]]}'
    assert sparse("{}/5") == '{"dimensions":5,"vector":[]}'


def test_a_sparse_vector_of_too_many_dimensions_is_counted() -> None:
    lost: list[str] = []
    assert spatial.sparse_vector(lost.append)("{1:1}/40000") == "null"
    assert lost == [spatial.WIDE]


@pytest.mark.parametrize(
    ("text", "java"),
    [
        ("{1,2,3}", "{1.0,2.0,3.0}"),
        ("(3,4),(1,2)", "(3.0,4.0),(1.0,2.0)"),
        ("<(1,2),3>", "<(1.0,2.0),3.0>"),
        ("[(0,0),(1e+20,-1.5)]", "[(0.0,0.0),(1.0E20,-1.5)]"),
        ("(NaN,-Infinity),(1,1)", "(NaN,-Infinity),(1.0,1.0)"),
    ],
)
def test_shapes_are_as_javas_driver_prints_them(text: str, java: str) -> None:
    assert spatial.java_shape(text) == java


@pytest.mark.parametrize("text", ["", "x", "(1)", "[1", "01", "{1}/", "{1:x}/3"])
def test_other_texts_are_refused(text: str) -> None:
    sparse = spatial.sparse_vector(lambda _: None)
    for render in (spatial.point, spatial.geometry, spatial.vector, sparse):
        with pytest.raises(ValueError, match=r"."):
            render(text)
