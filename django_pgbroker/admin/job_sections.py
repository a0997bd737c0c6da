"""Parts that the detail pages of live, finished and dead jobs share."""

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest

from django_pgbroker.admin.display import NOTHING, badge, duration, duration_between, link, moment, pretty_json
from django_pgbroker.admin.section import Section, Table
from django_pgbroker.domain.states import Outcome
from django_pgbroker.models import Execution, Worker
from django_pgbroker.models.clock import Clock

#: Executions listed on a job's page; the list of executions, searched by the job, has all.
SHOWN_EXECUTIONS = 50


def describe_job(job: Any) -> str:
    """A job in words for the heading of a page: ``job 7 (shop.send_receipt, queue mail)``."""
    return f"job {job.pk} ({job.job_type.name}, queue {job.queue.name})"


def origin_facts(job: Any, carrier: Any) -> list[tuple[str, Any]]:
    """Who asked for the job, in which trace.

    Args:
        job: a live or archived job.
        carrier: the row with its correlation id and creator: its payload, or the archived job itself; may be ``None``.
    """
    return [
        ("Tenant", job.tenant.name),
        ("Created by", getattr(carrier, "created_by", None) or NOTHING),
        ("Correlation id", getattr(carrier, "correlation_id", None) or NOTHING),
        ("Run group", job.run_group_id or NOTHING),
    ]


def payload_sections(carrier: Any) -> list[Section]:
    """What the job carries: arguments, and headers where there are any."""
    sections = [Section(f"Arguments (payload version {carrier.version})", text=pretty_json(carrier.arguments))]
    if carrier.headers:
        sections.append(Section("Headers", text=pretty_json(carrier.headers)))
    return sections


def execution_sections(site: AdminSite, request: HttpRequest, job_id: int) -> list[Section]:
    """The newest executions of a job and the traceback of the last failure, for those who may see executions."""
    if not request.user.has_perm("django_pgbroker.view_execution"):
        return []
    newest_first = Execution.objects.for_job(job_id).order_by("-lease_token")
    rows = newest_first.select_related("worker").annotate(read_at=Clock()).defer("traceback")[: SHOWN_EXECUTIONS + 1]
    executions = list(rows)
    table = Table(
        ("Attempt", "Outcome", "Started", "Ran for", "Worker", "Error"),
        [_execution_row(site, execution) for execution in executions[:SHOWN_EXECUTIONS]],
    )
    remark = "" if executions else "None has ended yet."
    if len(executions) > SHOWN_EXECUTIONS:
        remark = f"The newest {SHOWN_EXECUTIONS}. Search the executions by this job's number for all."
    sections = [Section("Executions", table=table if executions else None, remark=remark)]
    failed = newest_first.filter(traceback__isnull=False).values_list("attempt", "traceback").first()
    if failed:
        sections.insert(0, Section(f"Traceback of attempt {failed[0]}", text=failed[1]))
    return sections


def _execution_row(site: AdminSite, execution: Any) -> tuple[Any, ...]:
    worker = execution.worker
    return (
        link(site, Execution, f"{execution.job_id}-{execution.lease_token}", f"attempt {execution.attempt}"),
        badge(Outcome(execution.outcome).label),
        moment(execution.leased_at, execution.read_at),
        duration(execution.run_microseconds)
        if execution.run_microseconds is not None
        else duration_between(execution.leased_at, execution.finished_at),
        link(site, Worker, worker.pk, worker.name) if worker else NOTHING,
        shorten_error(execution.error_class, execution.error_message) or execution.reason or NOTHING,
    )


def shorten_error(error_class: str | None, message: str | None, length: int = 120) -> str:
    """An error in one line for lists: the class without its module, and the start of the message."""
    if not error_class:
        return ""
    name = error_class.rpartition(".")[2]
    line = " ".join((message or "").split())
    return f"{name}: {line[:length]}{'…' if len(line) > length else ''}" if line else name
