"""Limit of the ops that a batch handler gets at once, after a failed batch. Pure."""


class BatchLimit:
    """Half as many after a failure, twice as many after a success.

    So the op that fails is alone in the end, behind those that came before it. A batch
    that fails in an outage grows again as soon as the outage is over.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.now = most

    def failed(self, count: int) -> bool:
        """Halve a batch of so many ops; return False where one op failed alone."""
        self.now = max(1, count // 2)
        return count > 1

    def succeeded(self) -> None:
        self.now = min(self.most, self.now * 2)
