"""`python -m bench.batch_reader`: a slot read as cheaply for its walsender as can be.

It takes what has come once in a while, as bytes that nobody looks into, and never
confirms anything. A walsender sends each row on its own while its socket has room, and
many at once where it waits for room: so the room is small, and is full between two
looks.
"""

import argparse
import socket
import struct
import time
from typing import Final

from psycopg import pq
from psycopg.pq.abc import PGconn

_GATHER_S: Final = 0.01
_ROOM: Final = 1 << 16
_BLOCK: Final = 1 << 20
_STATUS_EVERY_S: Final = 10.0  # before the walsender gives its reader up
_STATUS: Final = struct.pack("!cqqqqB", b"r", 0, 0, 0, 0, 0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.batch_reader")
    parser.add_argument("--dsn", required=True, help="a URL")
    parser.add_argument("--slot", required=True)
    parser.add_argument("--publication", required=True)
    wanted = parser.parse_args()
    connection = pq.PGconn.connect(f"{wanted.dsn}?replication=database".encode())
    command = (
        f"START_REPLICATION SLOT {wanted.slot} LOGICAL 0/0"
        f" (proto_version '1', publication_names '{wanted.publication}')"
    )
    result = connection.exec_(command.encode())
    if result.status != pq.ExecStatus.COPY_BOTH:
        raise SystemExit(connection.error_message.decode())
    print("reading", flush=True)
    read(connection)


def read(connection: PGconn) -> None:
    """Read until the connection or this process ends."""
    block = bytearray(_BLOCK)
    told_s = time.monotonic()
    with socket.socket(fileno=connection.socket) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        while has_more(end, block):
            time.sleep(_GATHER_S)
            if time.monotonic() - told_s > _STATUS_EVERY_S:
                told_s = time.monotonic()
                connection.put_copy_data(_STATUS)
                connection.flush()


def has_more(end: socket.socket, block: bytearray) -> bool:
    """Take all that is there; return whether more may come."""
    try:
        while end.recv_into(block):
            pass
    except BlockingIOError:
        return True
    return False


if __name__ == "__main__":
    main()
