"""Limits of a capture: what is not captured whole, and the cure. Pure."""

from collections.abc import Mapping

from walstream.postgres import publication, replica_identity
from walstream.postgres.capture_report import CaptureLimit
from walstream.postgres.catalog import TableFacts
from walstream.postgres.selection import Selection
from walstream.postgres.table_pattern import unmatched


def limits_of(
    wanted: Selection,
    plan: publication.PublicationPlan,
    facts: Mapping[str, TableFacts],
    *,
    inserts_read: bool,
) -> dict[str, CaptureLimit]:
    """Return the limits, by table or pattern."""
    found = {
        pattern: CaptureLimit(f"pattern {what}")
        for pattern, what in unmatched(wanted.patterns, facts).items()
    }
    for name, reason in plan.misfits.items():
        found[name] = CaptureLimit(f"not captured: {reason}")
    for name, reason in plan.refused.items():
        cure = publication.set_logged(facts[name])
        found[name] = CaptureLimit(f"not captured: {reason}", cure)
    what = "only its inserts are captured" if inserts_read else "not captured"
    for table in plan.insert_only:
        culprits = replica_identity.culprits(table, facts).values()
        reasons = dict.fromkeys(map(replica_identity.reason, culprits))
        found[table.full_name] = CaptureLimit(
            f"{what}: {', '.join(reasons) or 'it has no replica identity'}",
            "\n".join(filter(None, map(replica_identity.cure, culprits))),
        )
    return found
