"""Keeps the publication as the source's `tables` want it, and notices its loss.

Run at start and then again and again over short sessions: new tables that match are
added, tables that lost their replica identity are moved where they do no harm.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from walstream.errors import (
    RESET,
    ConfigError,
    PermissionLacking,
    PublicationLost,
    Repair,
    WalstreamError,
)
from walstream.pipeline.state_document import Entries
from walstream.postgres import (
    catalog,
    privileges,
    publication,
    replica_identity,
)
from walstream.postgres.capture_limits import limits_of
from walstream.postgres.capture_report import (
    CaptureLimit,
    CaptureReport,
    capture_report,
)
from walstream.postgres.capture_warnings import CaptureWarnings
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection, publication_lost
from walstream.postgres.missing_rows import Mending
from walstream.postgres.privileges import Rights
from walstream.postgres.publication import Publication
from walstream.postgres.publication_change import Alteration
from walstream.postgres.publication_memory import StoredPublication
from walstream.postgres.publication_steps import (
    exclusions,
    placements,
    relistings,
)
from walstream.postgres.publication_watch import PublicationLook, PublicationWatch
from walstream.postgres.selection import (
    EVERYTHING,
    Selection,
    Unselectable,
    misfits,
    unselectable,
)
from walstream.postgres.warning_once import WarningOnce


@dataclass(slots=True)
class Capture:
    """The publications of one source, and what is remembered of them."""

    dsn: str
    name: str
    wanted: Selection
    keep: Callable[[Entries], None]  # stores what is remembered
    # hears of tables that came in since: their old rows were not streamed
    grown: Callable[[Sequence[str]], None] = lambda _tables: None
    mending: Mending = field(default_factory=Mending)
    _teller: WarningOnce = field(default_factory=WarningOnce)
    watch: PublicationWatch = field(init=False)
    _warnings: CaptureWarnings = field(init=False)
    # replaced whole at each look, since another thread reports them
    _limits: Mapping[str, CaptureLimit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._warnings = CaptureWarnings(self.wanted, self._teller)
        self.watch = PublicationWatch(
            self.name,
            self.wanted,
            self.keep,
            self.grown,
            self.mending,
            self._teller,
        )

    @property
    def names(self) -> tuple[str, str]:
        """Both publications: the main one, and that of tables without identity."""
        return self.name, publication.insert_only(self.name)

    @property
    def entry(self) -> Entries:
        """What stores the memory of those that are read."""
        return self.watch.entry

    @property
    def read(self) -> list[str]:
        """Names of those that are read, in order."""
        return sorted(self.watch.names)

    def report(self) -> CaptureReport:
        """Return which publications are read, and what they lack."""
        return capture_report(self.read, self._limits)

    def obstacles(
        self,
        connection: Connection,
        may: Rights,
        facts: Mapping[str, TableFacts],
    ) -> Iterator[WalstreamError]:
        """Yield what would keep `establish` from doing its work."""
        yield from self.unselectable(connection, facts)
        found = publication.find(connection, self.names)
        if self.name in found:
            return
        if not self.wanted.patterns:
            yield self._not_there(facts)
            return
        plan = publication.plan(self.wanted, facts, found.values())
        lacking = privileges.missing_to_create(
            may, self._statements(connection, plan), plan.identified
        )
        if lacking is not None:
            yield lacking

    def unselectable(
        self, connection: Connection, facts: Mapping[str, TableFacts]
    ) -> Iterator[Unselectable]:
        """Yield what of `exclude` and `columns` cannot be done."""
        yield from misfits(self.wanted, facts)
        yield from self._whole(publication.find(connection, self.names).values())

    def _whole(self, found: Iterable[Publication]) -> Iterator[Unselectable]:
        """Yield the publications that take no exceptions."""
        for made in found:
            problem = unselectable(
                self.wanted,
                made.name,
                sorted(made.schemas),
                all_tables=made.all_tables,
            )
            if problem is not None:
                yield problem

    def _not_there(self, facts: Mapping[str, TableFacts]) -> ConfigError:
        every = publication.plan(EVERYTHING, facts).identified
        statement = publication.creation(self.name, every, publication.ALL_OPERATIONS)
        return ConfigError(
            f"publication {self.name!r} does not exist, and `tables` is empty",
            hint="create it for the tables that you want, or name them in `tables`",
            repair=Repair(sql=statement),
        )

    def _statements(
        self, connection: Connection, plan: publication.PublicationPlan
    ) -> list[str]:
        """Write what creates those that are missing, the main one first."""
        found = publication.find(connection, self.names)
        main, inserts = self.names
        made = {
            main: self.creation(main, plan, found),
            inserts: self.creation(inserts, plan, found),
        }
        return [statement for name, statement in made.items() if name not in found]

    def creation(
        self,
        name: str,
        plan: publication.PublicationPlan,
        found: Mapping[str, Publication],
    ) -> str:
        """Write what creates one of the two: with generated columns as the other."""
        tables, publish = plan.identified, publication.ALL_OPERATIONS
        if name != self.name:
            tables, publish = plan.insert_only, publication.INSERT_OPERATIONS
        stored = publication.stored(self.wanted, found.values())
        return publication.creation(
            name, tables, publish, self.wanted, generated=stored
        )

    def establish(self, connection: Connection) -> None:
        """Create what is missing before the slot is, and remember it.

        Both publications must be older than the slot: a slot reads no publication that
        was created after what it decodes.
        """
        found = publication.find(connection, self.names)
        facts = catalog.tables(connection)
        for problem in self.unselectable(connection, facts):
            raise problem
        if not self.wanted.patterns:
            if self.name not in found:
                raise self._not_there(facts)
            self.watch.begin(connection, {self.name: found[self.name]})
            self._warnings.of_nothing(found[self.name], facts)
            return
        plan = publication.plan(self.wanted, facts, found.values())
        with connection.transaction():
            self._create(connection, plan, found)
        self.recognise(connection, at_first=True)

    def recognise(self, connection: Connection, *, at_first: bool = False) -> None:
        """Remember the existing publications, and extend them.

        Nothing is created: an existing slot could not read it. `at_first`: the rows of
        all tables are the first backfill's, also of those that come in now.
        """
        self.watch.begin(connection, self.present(connection))
        self.watch.at_first = at_first
        facts = catalog.tables(connection)
        for problem in misfits(self.wanted, facts):
            raise problem
        try:
            self.extend(connection, facts)
        finally:
            self.watch.at_first = False

    def check_adopted(self, connection: Connection) -> None:
        """See that there is the publication of which a slot's former reader read."""
        there = publication.find(connection)
        if self.name not in there:
            names = ", ".join(map(repr, sorted(there))) or "none"
            raise ConfigError(
                f"publication {self.name!r} does not exist, and a slot that is adopted"
                f" knows those alone that its former reader read; there are: {names}",
                hint="set `publication` of the source to its name; nothing was changed",
            )

    def present(self, connection: Connection) -> dict[str, Publication]:
        """Return the publications of an existing slot; raise without the main one."""
        found = publication.find(connection, self.names)
        if self.name not in found:
            raise publication_lost(f"publication {self.name!r} does not exist")
        return found

    def resume(
        self,
        connection: Connection,
        remembered: Mapping[str, StoredPublication] | None,
        facts: Mapping[str, TableFacts],
    ) -> None:
        """Go on with what was remembered; raise PublicationLost where it is gone."""
        self.recall(remembered)
        for problem in misfits(self.wanted, facts):
            raise problem
        self.watch.check(connection, starting=True)
        self.extend(connection, facts)

    def recall(self, remembered: Mapping[str, StoredPublication] | None) -> None:
        """Take up what was stored; without it nobody knows what was missed.

        Raise PublicationLost where it is of another publication: the slot goes on
        with that one, and nobody would keep it as `tables` wants.
        """
        self.watch.recall(remembered)
        if self.name not in self.watch.names:
            former = ", ".join(map(repr, self.read))
            raise PublicationLost(
                f"the source streams by the publication {former}, and its configuration"
                f" names {self.name!r}",
                hint="give `publication` its former name; if the change is meant, reset"
                " the source: a slot does not read a publication that is newer",
                repair=RESET,
            )

    def check(self, connection: Connection) -> None:
        """Raise PublicationLost when one is gone or no longer what it was."""
        self.watch.check(connection)

    def examine(self, connection: Connection) -> PublicationLook:
        """Compare the publications with what is remembered, and change nothing."""
        return self.watch.examine(connection)

    def _create(
        self,
        connection: Connection,
        plan: publication.PublicationPlan,
        found: Mapping[str, Publication],
    ) -> None:
        main, inserts = self.names
        if main not in found:
            publication.execute(connection, self.creation(main, plan, found))
        if inserts not in found:
            try:
                with connection.transaction():
                    publication.execute(connection, self.creation(inserts, plan, found))
            except PermissionLacking as error:
                self._teller.warn(
                    inserts,
                    "no publication for tables without a replica identity",
                    hint=f"{error.hint}. It must be older than the slot, so then: "
                    "walstream positions reset SOURCE",
                    repair=error.repair,
                )

    def extend(self, connection: Connection, facts: Mapping[str, TableFacts]) -> None:
        """Make the publications as they are wanted; remember what changed."""
        found = publication.find(connection, self.watch.names)
        main = found.get(self.name)
        for problem in self._whole(found.values()):
            raise problem
        if main is not None and not self.wanted.patterns:
            self._warnings.of_nothing(main, facts)
        if not self.wanted.patterns or main is None:
            return
        inserts = found.get(publication.insert_only(self.name))
        there = [made for made in (main, inserts) if made is not None]
        self._warnings.of_unwanted(there, facts)
        if main.all_tables:
            return
        plan = publication.plan(self.wanted, facts, there)
        self._limits = limits_of(
            self.wanted, plan, facts, inserts_read=inserts is not None
        )
        self._warnings.of_plan(plan, facts)
        self._warnings.of_generated(there)
        lists = list(relistings(self.wanted, plan, main, inserts))
        relisted = self.watch.relisted([name for one in lists for name in one.relisted])
        self.watch.check_rule(connection, relisted)  # before anything is changed
        changes = [
            *lists,
            *(part for one in placements(plan, main, inserts) for part in one.parts()),
            *exclusions(self.wanted, there, facts),
        ]
        for change in changes:
            Alteration(connection, self.watch, self._teller, self.wanted).run(change)
        for table in plan.insert_only:
            culprits = replica_identity.culprits(table, facts).values()
            self._warnings.of_no_identity(table, culprits, read=inserts is not None)

    def captured(
        self, connection: Connection, facts: Mapping[str, TableFacts]
    ) -> dict[str, TableFacts]:
        """Name the tables that are captured now, or will be once begun."""
        found = publication.find(connection, self.names).values()
        plan = publication.plan(self.wanted, facts)
        wanted = {table.full_name for table in plan}
        return {
            name: table
            for name, table in facts.items()
            if name in wanted or any(made.holds(table) for made in found)
        }
