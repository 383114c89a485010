from typing import Any, Self

class Count:
    def __new__(cls, owner: object, /) -> Self: ...
    def offset(self) -> int: ...

class Producer:
    name: str
    def __new__(cls, properties: dict[str, str], /) -> Self: ...
    def __len__(self) -> int: ...
    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        count: object,
        on_delivery: None = None,
        timestamp_ms: int = 0,
        headers: list[tuple[str, Any]] | None = None,
        /,
    ) -> None: ...
    def poll(self, seconds: float, /) -> int: ...
    def flush(self, seconds: float, /) -> int: ...
    def purge(self) -> None: ...
    def take(
        self,
    ) -> (
        tuple[
            int,
            list[tuple[object, int]],
            list[tuple[object, int, str, int]],
            list[tuple[int, int, str, str]],
        ]
        | None
    ): ...
    def close(self) -> None: ...
    def list_topics(self, topic: str, timeout: float, /) -> None: ...
