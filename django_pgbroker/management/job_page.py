"""Everything about one job, as text or as JSON. Printed by ``pgbroker_jobs show``."""

import json
from typing import Any

from django.core.management.base import OutputWrapper

from django_pgbroker.domain.durations import describe_seconds
from django_pgbroker.domain.states import Outcome
from django_pgbroker.management.audit_rows import AUDIT_HEAD, audit_row, encode_entry
from django_pgbroker.management.job_rows import describe_error, describe_state, encode_job
from django_pgbroker.management.listing import write_facts, write_moment, write_rows
from django_pgbroker.models import Execution, Job
from django_pgbroker.operations.job_detail import JobDetail

_EXECUTION_HEAD = ("attempt", "outcome", "started", "ended", "ran for", "worker", "error")


def encode_detail(detail: JobDetail) -> dict[str, Any]:
    """The job with all keys that the reference documents."""
    job, carrier = detail.job, detail.carrier
    is_live = isinstance(job, Job)
    return {
        **encode_job(job),
        "expires_at": job.expires_at if is_live else None,
        "deadline_at": job.deadline_at if is_live else None,
        "leased_at": job.leased_at if is_live else None,
        "lease_expires_at": job.lease_expires_at if is_live else None,
        "timeout_seconds": job.timeout_seconds,
        "deaths": job.deaths,
        "interruptions": job.interruptions,
        "unmet_dependencies": job.unmet if is_live else None,
        "run_group_id": job.run_group_id,
        "arguments": getattr(carrier, "arguments", None),
        "version": getattr(carrier, "version", None),
        "headers": getattr(carrier, "headers", None),
        "correlation_id": getattr(carrier, "correlation_id", None),
        "created_by": getattr(carrier, "created_by", None),
        "cancel_requested_by": job.cancel_requested_by if is_live else None,
        "cancel_reason": job.cancel_reason if is_live else None,
        "result": None if is_live else job.result,
        "progress": detail.progress,
        "steps": [{"name": step.name, "finished_at": step.finished_at, "result": step.result} for step in detail.steps],
        "executions": [_encode_execution(execution) for execution in detail.executions],
        "audit": [encode_entry(entry) for entry in detail.acts],
    }


def write_detail(out: OutputWrapper, detail: JobDetail) -> None:
    """Print the job: facts, payload, executions, and what operators did to it."""
    write_facts(out, _list_facts(detail))
    _write_json(out, "arguments", getattr(detail.carrier, "arguments", None))
    for name in ("headers", "result"):
        if (value := getattr(detail.carrier, name, None)) is not None:
            _write_json(out, name, value)
    for step in detail.steps:
        _write_json(out, f"step {step.name}" if step.name else "cursor", step.result)
    if detail.executions:
        out.write("\nexecutions, newest first")
        write_rows(out, _EXECUTION_HEAD, [_execution_row(execution) for execution in detail.executions])
    failed = next((each for each in detail.executions if each.traceback), None)
    if failed is not None:
        out.write("")
        write_facts(out, [(f"traceback of attempt {failed.attempt}", failed.traceback.rstrip())])
    if detail.acts:
        out.write("\naudit, newest first")
        write_rows(out, AUDIT_HEAD, [audit_row(entry) for entry in detail.acts])


def _list_facts(detail: JobDetail) -> list[tuple[str, str]]:
    job, carrier = detail.job, detail.carrier
    facts = [
        ("job", str(job.pk)),
        ("state", describe_state(job)),
        ("type", job.job_type.name),
        ("queue", job.queue.name),
        ("tenant", job.tenant.name),
        ("priority", str(job.priority)),
        ("attempt", f"{job.attempt} of {job.max_attempts}"),
        ("worker deaths", str(job.deaths)),
        ("created", write_moment(job.created_at)),
        ("due", write_moment(job.available_at)),
        *(_live_facts(job) if isinstance(job, Job) else _finished_facts(job)),
        ("time-out", f"{job.timeout_seconds} s" if job.timeout_seconds else ""),
        ("created by", getattr(carrier, "created_by", None) or ""),
        ("correlation id", getattr(carrier, "correlation_id", None) or ""),
        ("progress", _describe_progress(detail.progress) if detail.progress else ""),
    ]
    return [(name, text) for name, text in facts if text]


def _live_facts(job: Any) -> list[tuple[str, str]]:
    asked = f"by {job.cancel_requested_by}: {job.cancel_reason or 'no reason given'}"
    return [
        ("latest start", write_moment(job.expires_at)),
        ("latest finish", write_moment(job.deadline_at)),
        ("worker", job.worker.name if job.worker else ""),
        ("claimed", write_moment(job.leased_at)),
        ("lease ends", write_moment(job.lease_expires_at)),
        ("waits for", f"{job.unmet} unfinished dependencies" if job.unmet else ""),
        ("cancel requested", f"{write_moment(job.cancel_requested_at)} {asked}" if job.cancel_requested_at else ""),
    ]


def _finished_facts(job: Any) -> list[tuple[str, str]]:
    return [
        ("finished", write_moment(job.finished_at)),
        ("reason", job.reason or ""),
        ("error class", job.error_class or ""),
        ("error", job.error_message or ""),
    ]


def _describe_progress(told: Any) -> str:
    amount = f"{told['done']:,g}" + (f" of {told['total']:,g}" if told.get("total") else "")
    return f"{amount} {told.get('stage') or ''}".strip()


def _write_json(out: OutputWrapper, name: str, value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    out.write("")
    write_facts(out, [(name, text)])


def _execution_row(execution: Execution) -> tuple[str, ...]:
    return (
        str(execution.attempt),
        Outcome(execution.outcome).label,
        write_moment(execution.leased_at),
        write_moment(execution.finished_at),
        "" if execution.run_microseconds is None else describe_seconds(execution.run_microseconds / 1_000_000),
        execution.worker.name if execution.worker else "",
        describe_error(execution.error_class, execution.error_message) or execution.reason or "",
    )


def _encode_execution(execution: Execution) -> dict[str, Any]:
    return {
        "attempt": execution.attempt,
        "lease_token": execution.lease_token,
        "outcome": Outcome(execution.outcome).label,
        "leased_at": execution.leased_at,
        "finished_at": execution.finished_at,
        "run_microseconds": execution.run_microseconds,
        "worker": execution.worker.name if execution.worker else None,
        "reason": execution.reason,
        "error_class": execution.error_class,
        "error": execution.error_message,
        "traceback": execution.traceback,
    }
