"""A record's value of each kind and format, as docs/formats.md has them."""

from typing import Final

_OP = (
    b'{"table_name":"stock","col_names":["id","n","note"],"lsn":28318112,"seq_id":%d,'
    b'"op":%b}'
)
OPS: Final[dict[str, bytes]] = {
    "insert": _OP % (0, b'{"Insert":["1","9",null]}'),
    "update": _OP % (1, b'{"Update":[["1","9",null],["1","9","h\xc3\xa9\\"llo\\n"]]}'),
    "delete": _OP % (2, b'{"Delete":["1","9","t"]}'),
    "toast": (
        b'{"table_name":"t","col_names":["id","n","v"],"lsn":28318112,"seq_id":0,'
        b'"op":{"Update":[null,["1","1",null]]},"absent":{"new":["v"]}}'
    ),
    "key only": (
        b'{"table_name":"t","col_names":["id","n","v"],"lsn":28318112,"seq_id":1,'
        b'"op":{"Delete":["1",null,null]},"absent":{"old":["n","v"]}}'
    ),
    "truncate": (
        b'{"table_name":"t","col_names":["id","n","v"],"lsn":28318112,"seq_id":2,'
        b'"op":"Truncate","schema":"s","partitions":4}'
    ),
    "snapshot": (
        b'{"table_name":"t","col_names":["id","n","v"],"lsn":28318000,'
        b'"seq_id":4294967303,"op":{"Insert":["1","1","x"]},"schema":"s",'
        b'"snapshot":true}'
    ),
}
EVENT: Final = (
    b'{"Host":"127.0.0.1","Database":"test","Table":"test","Action":"%b",'
    b'"WALPosition":28317656,"Timestamp":"2026-11-21T06:28:02.019132519Z",'
    b'"UUID":"5bdc360e-91a6-4062-9c7d-94cceabcc7ec","Columns":%b}'
)
TUNGSTEN: Final = (
    b'{"_seqno":"4865","_source_table":"msg","_committime":"2017-07-13 15:30:37.0",'
    b'"_source_schema":"test","record":{"msg":"Hello Kafka","id":"2384726"},'
    b'"_optype":"%b"}'
)
TXINFO: Final = (
    b'{"_seqno":"4865","txinfo":{"txinfo_rowcount":"3",'
    b'"txinfo_rowcount_msg.msg":"1","txinfo_rowcount_msg.msgsub":"2"},'
    b'"lsn":4865,"end_lsn":4900,"xid":7,"commit_time":946684800000005,'
    b'"rows":{"msg.msg":{"0":1,"3":2}},"parked":0}'
)
ROW: Final = (
    b'{"timestamp":1795242889.1057744,"name":"processes","table":"processes",'
    b'"data":{"id":3,"pid":30,"name":"n3","user":"root","command":"/bin/\\u00e9"},'
    b'"hash":"a6c4b600c43857fa266e01921d439f10ac613c140db4b525f5747ea94a3f47fd"}'
)
ALL: Final[tuple[bytes, ...]] = (
    *OPS.values(),
    EVENT % (b"insert", b'{"a":369223,"b":"a"}'),
    EVENT % (b"update", b'{"a":9007199254740993,"b":null}'),
    EVENT % (b"delete", b'{"a":1,"b":null}'),
    EVENT % (b"truncate", b"{}"),
    *(TUNGSTEN % kind for kind in (b"INSERT", b"UPDATE", b"DELETE")),
    TXINFO,
    ROW,
)
