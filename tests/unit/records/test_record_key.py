"""Keys that a format makes itself."""

from walstream.formats import ENCODERS, Context
from walstream.op import Kind, ReplicationOp, Table
from walstream.records.key import KEY_FORMS
from walstream.records.record_key import with_own_key
from walstream.records.router import Route

TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))
OP = ReplicationOp(Kind.INSERT, TABLE, 9, 0, new=["1", "x"])


def route(*indexes: int) -> Route:
    context = Context()
    return Route("t", KEY_FORMS["json"](TABLE, indexes, context.origin))


def test_a_format_without_keys_leaves_the_route() -> None:
    plain = route(0)
    assert with_own_key(plain, ENCODERS["op"](TABLE, Context()), TABLE) is plain


def test_debeziums_key_is_an_object() -> None:
    encoder = ENCODERS["debezium"](TABLE, Context())
    key = with_own_key(route(0), encoder, TABLE).key
    assert key.render(OP) == b'{"id":1}'
    assert (key.columns, key.null) == ((0,), False)


def test_a_row_without_a_key_goes_where_its_table_goes() -> None:
    encoder = ENCODERS["debezium"](TABLE, Context())
    key = with_own_key(route(), encoder, TABLE).key
    assert key.null
    assert key.render(OP) == key.table_key == b"public.t"
