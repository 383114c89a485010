"""A second broker of a cluster whose first one is broker and controller."""

import re
from typing import Final

from walstream.testing.servers import LocalKafka

_ID: Final = 2
_VOTERS: Final = re.compile(r"^controller\.quorum\.voters=(.*)$", re.MULTILINE)


class SecondBroker(LocalKafka):
    """Broker 2; a partition that only it has is without a leader while it is dead."""

    def __init__(self, first: LocalKafka) -> None:
        """`first` runs, and goes on running longer than this one."""
        super().__init__()
        self._first = first

    def _launch_settings(self) -> dict[str, str]:
        written = (self._first.folder / "server.properties").read_text("utf-8")
        voters = _VOTERS.search(written)
        assert voters is not None, written
        return {
            "process.roles": "broker",
            "node.id": f"{_ID}",
            "controller.quorum.voters": voters[1].replace("\\", ""),
            "listeners": f"PLAINTEXT://{self.bootstrap}",
        }

    def _configure(self) -> None:
        self.settings |= self._launch_settings()
        super()._configure()

    def _format(self) -> None:
        """Be of the first one's cluster."""
        self.data.mkdir()
        meta = (self._first.data / "meta.properties").read_text("utf-8")
        meta = re.sub("^node.id=.*$", f"node.id={_ID}", meta, flags=re.MULTILINE)
        meta = re.sub("^directory.id=.*\n", "", meta, flags=re.MULTILINE)
        (self.data / "meta.properties").write_text(meta, "utf-8")
