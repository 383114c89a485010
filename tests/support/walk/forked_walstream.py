"""`walstream run` as a fork of the walk's own server, with the walk's environment."""

from collections.abc import Sequence

from tests.support.programs.fork import Forked, ForkServer
from tests.support.programs.walstream import Walstream


class ForkedWalstream(Walstream):
    server: ForkServer

    def _launch(self, arguments: Sequence[str]) -> Forked:
        return self.server.start(*arguments, stdout=self.log_path)
