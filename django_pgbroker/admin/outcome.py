"""What came of a verb, as messages. Called when a verb has been carried out."""

from typing import Any

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from django_pgbroker.admin.choice import count_words
from django_pgbroker.admin.display import link
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.domain.verbs import Verb, find_verb
from django_pgbroker.models import Job
from django_pgbroker.operations.queues import QueueChange

#: More refusals are only counted.
_NAMED_REFUSALS = 5


def tell_outcome(screen: "ModelAdmin[Any]", request: HttpRequest, verb: Verb, phrase: str, result: Any) -> None:
    """Say what an operation answered.

    Args:
        screen: whose list or page comes next.
        request: to which the messages belong.
        verb: what was done.
        phrase: to what, in words.
        result: a report; or, of queues and workers, what or whether anything changed.
    """
    if isinstance(result, VerbReport):
        _tell_report(screen, request, result)
    elif isinstance(result, QueueChange):
        _tell_queue_change(screen, request, phrase, result)
    elif result:
        screen.message_user(request, f"{_capitalised(phrase)}: {verb.done}.", messages.SUCCESS)
    else:
        screen.message_user(request, f"{_capitalised(phrase)} is so already; nothing changed.", messages.WARNING)


def _tell_report(screen: "ModelAdmin[Any]", request: HttpRequest, report: VerbReport) -> None:
    verb = find_verb(report.verb)
    if report.background_job_id is not None:
        job = link(screen.admin_site, Job, report.background_job_id, f"Job {report.background_job_id}")
        words = format_html("{} of the broker does this in the background, and shows how far it is.", job)
        screen.message_user(request, words, messages.SUCCESS)
        if report.obstacle:
            screen.message_user(request, f"It waits: {report.obstacle}.", messages.WARNING)
        return
    if report.changed == 1 and not report.requested and report.ids:
        job = link(screen.admin_site, Job, report.ids[0], f"Job {report.ids[0]}")
        screen.message_user(request, format_html("{} {}.", job, verb.done), messages.SUCCESS)
    elif ended := report.changed - report.requested:
        screen.message_user(request, f"{count_words(ended, 'job')} {verb.done}.", messages.SUCCESS)
    if report.requested:
        running = f"{count_words(report.requested, 'running job')} asked to end."
        screen.message_user(request, running, messages.SUCCESS)
    if report.refused:
        screen.message_user(request, _describe_refusals(report), messages.WARNING)
    if not (report.changed or report.refused):
        screen.message_user(request, "No job matched; nothing changed.", messages.WARNING)


def _tell_queue_change(screen: "ModelAdmin[Any]", request: HttpRequest, phrase: str, change: QueueChange) -> None:
    what = "changed" if change.is_changed else "as it was"
    words = f"{_capitalised(phrase)}: {what}. {count_words(change.reordered, 'job')} brought into the new order."
    screen.message_user(request, words, messages.SUCCESS)
    if not change.is_complete:
        words = "Some jobs may still be in the old order: do it again in a while, with the same value."
        screen.message_user(request, words, messages.WARNING)


def _describe_refusals(report: VerbReport) -> SafeString:
    named = format_html_join("; ", "{}: {}", ((each.job_id, each.why) for each in report.refusals[:_NAMED_REFUSALS]))
    more = report.refused - _NAMED_REFUSALS
    rest = f"; and {more:,} more" if more > 0 else ""
    return format_html("{} not changed. {}{}.", count_words(report.refused, "job"), named, rest)


def _capitalised(words: str) -> str:
    return words[:1].upper() + words[1:]
