"""Enqueue a job as a person does: permitted, and audited with who and why. For the admin and for commands."""

from collections.abc import Mapping
from typing import Any

from django.db import DatabaseError, InterfaceError

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import InvalidOption, InvalidPayload, show_value
from django_pgbroker.domain.names import OWN_JOB_TYPES
from django_pgbroker.domain.options import OPTION_NAMES, JobOptions, describe_unknown
from django_pgbroker.domain.verbs import ENQUEUE_JOB
from django_pgbroker.operations.actors import Acting, read_actor
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.operations.enqueue import decide, store_job
from django_pgbroker.operations.handles import JobHandle
from django_pgbroker.operations.permissions import require
from django_pgbroker.registry import JobType, registry
from django_pgbroker.store.audit import write_audit
from django_pgbroker.store.errors import wrap_database_error

#: The options that a person may give; who created the job is not theirs to say.
OPTIONS_BY_HAND = tuple(name for name in OPTION_NAMES if name not in ("created_by", "using"))


def enqueue_by_name(
    job_type: str,
    arguments: Mapping[str, Any],
    *,
    actor: Acting,
    reason: str | None = None,
    source: str = "code",
    using: str | None = None,
    **options: Any,
) -> JobHandle:
    """Store a job in the name of ``actor``, with its audit entry in the same transaction.

    Args:
        job_type: a registered name or alias.
        arguments: the handler's arguments by name; strict JSON.
        actor: a user of Django, whose permission is checked, or a name for the audit, which is trusted.
        reason: why, up to 200 characters.
        source: ``code``, ``command``, ``ui`` or ``duty``.
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.
        options: those of ``enqueue``, but for ``created_by``: that is the actor.

    Returns:
        A handle with the job's id.

    Raises:
        NotPermitted: the user may not enqueue by hand, or not into this queue or for this tenant.
        InvalidOption: an option that does not exist or is impossible, or a job type of the broker itself.
        UnknownJobType, UnknownQueue, InvalidName, InvalidArguments, InvalidPayload, PayloadTooLarge, EnqueueConflict,
            BrokerDatabaseError: as ``enqueue`` does.
    """
    who = read_actor(actor, source, reason)
    for name in options:
        if name not in OPTIONS_BY_HAND:
            raise InvalidOption(describe_unknown(name, OPTIONS_BY_HAND))
    if not isinstance(arguments, Mapping):
        raise InvalidPayload("arguments", f"must be a mapping of arguments by name, not {show_value(arguments)}")
    settings = get_settings()
    # before anything is told about job types
    require(who, ENQUEUE_JOB)
    known = registry.get(job_type)
    if not is_for_hands(known):
        raise InvalidOption(f"{known.name!r} is a job type of the broker itself: the verbs that need it enqueue it")
    asked = JobOptions(**options, created_by=who.name)
    spec = decide(known, asked, settings)
    require(who, ENQUEUE_JOB, queue=spec.queue, tenant=spec.tenant)
    bound = known.bind((), arguments)
    gateway = open_caller_gateway(using or settings.database)
    try:
        with gateway.all_or_nothing():
            handle = store_job(known, bound, asked, gateway.alias)
            write_audit(
                gateway,
                actor=who.name,
                source=who.source,
                action=ENQUEUE_JOB.name,
                target={"jobs": [handle.id], "queues": [spec.queue]},
                reason=who.reason,
                after={
                    "job_type": spec.job_type,
                    "queue": spec.queue,
                    "tenant": spec.tenant,
                    "priority": spec.priority,
                },
            )
    except (DatabaseError, InterfaceError) as error:
        raise wrap_database_error(error, f"enqueue a job of type {spec.job_type!r} by hand") from error
    return handle


def is_for_hands(job_type: JobType) -> bool:
    """Whether people may write the arguments of its jobs: those of the broker itself name an actor, who is trusted."""
    return job_type.name not in OWN_JOB_TYPES
