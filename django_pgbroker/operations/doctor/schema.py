"""Examine what the migrations made: applied migrations, indexes, the plan of a claim. Listed in ``examination``."""

from django_pgbroker.operations.doctor.finding import Finding, Level, Subject
from django_pgbroker.operations.migration_state import read_migration_state
from django_pgbroker.store.doctor import find_busiest_queue, inspect_indexes, plan_claim

#: Every index that the migrations make, by its table; a test compares them.
EXPECTED_INDEXES = {
    "archived_job": {"archived_job_pkey"},
    "audit_entry": {"audit_entry_pkey", "audit_entry_target"},
    "execution": {"execution_pkey"},
    "job": {
        "job_pkey",
        "job_blocked",
        "job_claim",
        "job_due",
        "job_expiring",
        "job_parked",
        "job_running",
        "job_sequence",
    },
    "job_dependency": {
        "job_dependency_pkey",
        "job_dependency_child",
        "job_dependency_group",
        "job_dependency_parent",
    },
    "job_payload": {"job_payload_pkey"},
    "job_progress": {"job_progress_pkey"},
    "job_step": {"job_step_pkey"},
    "job_type": {"job_type_pkey", "job_type_name_key"},
    "queue": {"queue_pkey", "queue_name_key"},
    "run_group": {"run_group_pkey", "run_group_name_key"},
    "schedule": {"schedule_pkey", "schedule_due", "schedule_name_key"},
    "schedule_run": {"schedule_run_pkey", "schedule_run_occurrence_key"},
    "stat_minute": {"stat_minute_pkey"},
    "tenant": {"tenant_pkey", "tenant_name_key"},
    "worker": {"worker_pkey", "worker_live"},
}

#: One more index on these is one more to write for every job, and may lure the planner away from the claim's own.
_NO_MORE_INDEXES = ("job", "job_payload")


def examine_migrations(subject: Subject) -> Finding:
    """Whether the schema is the one that this code knows."""
    state = read_migration_state(subject.database)
    figures = {"missing": list(state.missing), "unknown": list(state.unknown)}
    if state.is_switched_off:
        return Finding(Level.UNSEEN, "The project switches our migrations off (MIGRATION_MODULES).", figures=figures)
    if state.missing:
        return Finding(
            Level.ALARM,
            f"Not applied: {', '.join(state.missing)}.",
            f"Run manage.py migrate django_pgbroker --database {subject.database} before the new workers start.",
            figures,
        )
    if state.unknown:
        return Finding(
            Level.WARNING,
            f"Applied, but unknown to this code: {', '.join(state.unknown)}. A newer release migrated it.",
            "Finish the deployment: this release runs beside the next one only while that rolls out.",
            figures,
        )
    return Finding(Level.OK, "All migrations are applied.", figures=figures)


def examine_indexes(subject: Subject) -> Finding:
    """Whether the indexes of the migrations exist and can be used, and whether others burden the hot tables."""
    found = inspect_indexes(subject.gateway)
    by_table: dict[str, set[str]] = {}
    for index in found:
        by_table.setdefault(index.table, set()).add(index.name)
    missing = sorted(name for table, names in EXPECTED_INDEXES.items() for name in names - by_table.get(table, set()))
    invalid = sorted(index.name for index in found if not index.is_valid)
    extra = sorted(name for table in _NO_MORE_INDEXES for name in by_table.get(table, set()) - EXPECTED_INDEXES[table])
    figures = {"missing": missing, "invalid": invalid, "extra": extra}
    if missing:
        return Finding(
            Level.ALARM,
            f"Missing: {', '.join(missing)}.",
            "Create them as migrations/sql of django_pgbroker does, with CREATE INDEX CONCURRENTLY.",
            figures,
        )
    if invalid:
        return Finding(
            Level.ALARM,
            f"Invalid, so used by no query: {', '.join(invalid)}.",
            f"REINDEX INDEX CONCURRENTLY pgbroker.{invalid[0]}; one whose name ends in _ccnew is the rest of a rebuild "
            "that was broken off: DROP INDEX it.",
            figures,
        )
    if extra:
        return Finding(
            Level.WARNING,
            f"Not ours, on a hot table: {', '.join(extra)}.",
            "Every job writes it, and it may lure the planner: drop it, or compare the rate without it.",
            figures,
        )
    return Finding(Level.OK, f"All {sum(map(len, EXPECTED_INDEXES.values()))} are there and valid.", figures=figures)


def examine_claim_plan(subject: Subject) -> Finding:
    """Whether the planner takes jobs by the index made for it, with the settings that a worker's connection has."""
    queue = find_busiest_queue(subject.gateway)
    queue_id, name = queue or (0, "no queue yet")
    figures: dict[str, list[dict[str, str | None]]] = {}
    astray = []
    for mode in ("force_custom_plan", "force_generic_plan"):
        nodes = plan_claim(subject.gateway, queue_id, mode)
        figures[mode] = [node._asdict() for node in nodes]
        is_right = any(node.index_name == "job_claim" for node in nodes)
        scans = [node.table for node in nodes if node.kind == "Seq Scan" and node.table.startswith("job")]
        if scans or not is_right:
            astray.append(mode.removeprefix("force_").replace("_", " "))
    if astray:
        return Finding(
            Level.ALARM,
            f"The {' and the '.join(astray)} of a claim ({name}) does not use job_claim: it reads all jobs.",
            "See `indexes`; then ANALYZE pgbroker.job; and look for planner settings of this role or database "
            "(ALTER ROLE … SET enable_indexscan, random_page_cost).",
            figures,
        )
    return Finding(Level.OK, f"A claim ({name}) goes by job_claim.", figures=figures)
