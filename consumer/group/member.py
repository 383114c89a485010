"""A member of a consumer group: how it runs and stops, whatever it does with ops."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

from consumer.group.assigned_partition import AssignedPartition, Place, Work
from consumer.group.fetcher import Fetcher
from consumer.group.settings import ClientProperties, consumer_settings
from consumer.group.stop_signals import stopping_at_signals
from consumer.group.topic_start import TopicStart
from consumer.name_pattern import is_pattern


class GroupMember(ABC):
    """Runs once: `run` returns after `stop`, or raises what stopped it."""

    def __init__(
        self,
        *,
        group: str,
        topics: Sequence[str] | str,
        kafka: ClientProperties,
        stop_timeout: float,
        threads: int | None = None,
    ) -> None:
        """`topics` are names, or patterns with * and ?.

        `threads` is how many partitions are handled at once, None: all.
        """
        self.group = group
        self.topics = [topics] if isinstance(topics, str) else list(topics)
        patterns = [topic for topic in self.topics if is_pattern(topic)]
        self._settings = consumer_settings(group, kafka, patterns)
        self._stop_timeout_s = stop_timeout
        self._threads = threads
        self._wish = threading.Event()
        self._at_rest = threading.Event()
        self._at_rest.set()
        self._runner = 0  # the thread's ident
        self._fetcher: Fetcher | None = None

    def run(self) -> None:
        """Handle ops until `stop`, SIGTERM or SIGINT (in the main thread)."""
        self._at_rest.clear()
        self._runner = threading.get_ident()
        try:
            with stopping_at_signals(self.stop):
                self._prepare()
                self._fetcher = Fetcher(
                    self._settings,
                    self.topics,
                    self._work,
                    self._wish,
                    stop_timeout_s=self._stop_timeout_s,
                    threads=self._threads,
                    start=self._topic_start(),
                )
                self._fetcher.run()
        finally:
            self._release()
            self._at_rest.set()

    def stop(self) -> None:
        """Ask `run` to return, from any thread; it finishes the ops in hand."""
        self._wish.set()
        fetcher = self._fetcher
        # in a signal handler, the thread that runs may hold the locks in question
        if fetcher is not None and threading.get_ident() != self._runner:
            fetcher.stop()

    def lag(self) -> dict[Place, int]:
        """Return how many records each assigned partition has yet to handle."""
        return {} if self._fetcher is None else self._fetcher.lag()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and wait for a `run` in another thread to return."""
        self.stop()
        self._at_rest.wait()

    @abstractmethod
    def _work(self, lane: AssignedPartition) -> Work: ...

    def _topic_start(self) -> TopicStart | None:
        """Return what tells partitions where they begin, if their work does not."""
        return None

    def _prepare(self) -> None:  # noqa: B027 - most have nothing to do
        """Get ready before anything is fetched."""

    def _release(self) -> None:  # noqa: B027 - likewise
        """Let go of what is left; a handler that did not return may still run."""
