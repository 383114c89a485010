"""Count of the records that one partition has of a task's."""

from walstream.pipeline.ledger import Counted


class PartitionCount(Counted):
    """Records of one partition; -1: those of other topics.

    In a module of its own: what is compiled has no subclass that is not.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
