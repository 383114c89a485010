"""What a record is counted in while it is under way."""


class Counted:
    """Records that are delivered together: a transaction, or what was read at once."""

    __slots__ = ("undelivered",)

    def __init__(self) -> None:
        self.undelivered = 0  # records handed to a sink, no delivery reported yet
