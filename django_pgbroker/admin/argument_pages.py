"""The pages with the arguments of a job: enqueue a new one, clone one, edit one. Buttons of the screens of jobs."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.html import format_html

from django_pgbroker.admin.acting import ActingScreen
from django_pgbroker.admin.arguments_form import ArgumentsForm, CloneForm, EnqueueForm
from django_pgbroker.admin.confirmation import CONFIRMED
from django_pgbroker.admin.display import link
from django_pgbroker.admin.outcome import tell_outcome
from django_pgbroker.admin.post_button import make_button
from django_pgbroker.domain.errors import NotPermitted, PgbrokerError, UnknownJobType
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.verbs import CLONE_JOB, EDIT_JOB, ENQUEUE_JOB, Verb
from django_pgbroker.models import Job
from django_pgbroker.operations.enqueue_by_hand import enqueue_by_name, is_for_hands
from django_pgbroker.operations.enqueue_form import list_fields
from django_pgbroker.operations.job_verbs import clone_job, edit_job
from django_pgbroker.registry import JobType, registry

TEMPLATE = "django_pgbroker/admin/arguments.html"

#: What an edit sends back of the arguments that it began with.
STORED = "stored"


class JobTypeForm(forms.Form):
    """The first question of an enqueue."""

    job_type = forms.ChoiceField(label="Job type")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field = self.fields["job_type"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(each.name, each.name) for each in registry.all() if is_for_hands(each)]


def with_argument_pages[S: type[ActingScreen]](screen: S) -> S:
    """Give a screen of jobs the buttons to clone and to edit one."""
    for verb, answer in ((EDIT_JOB, _edit), (CLONE_JOB, _clone)):
        name, handler = make_button(verb, answer, is_offered=_is_offered(verb), is_for_one=True)
        setattr(screen, name, handler)
    return screen


def with_enqueue[S: type[ActingScreen]](screen: S) -> S:
    """Give a screen the button to enqueue a job."""
    name, handler = make_button(
        ENQUEUE_JOB,
        _enqueue,
        is_offered=lambda screen, request, _: screen.is_permitted(request, ENQUEUE_JOB),
        is_for_one=False,
        label="Enqueue a job",
    )
    setattr(screen, name, handler)
    return screen


def _is_offered(verb: Verb) -> Callable[..., bool]:
    return lambda screen, request, job: (
        job is not None and verb.applies_to(JobState(job.state)) and screen.is_permitted(request, verb, job)
    )


def _enqueue(screen: ActingScreen, request: HttpRequest) -> HttpResponse:
    screen.require(request, ENQUEUE_JOB)
    chosen = JobTypeForm(request.POST or None)
    if "job_type" not in request.POST or not chosen.is_valid():
        form = chosen if "job_type" in request.POST else JobTypeForm()
        # this button confirms nothing: what is enqueued is said on the next page
        context = {"form": form, "submit": "Go on", "back_url": screen.list_url(), "confirmed": ""}
        return _draw(screen, request, "Enqueue a job", context)
    return _enqueue_type(screen, request, registry.get(chosen.cleaned_data["job_type"]))


def _enqueue_type(screen: ActingScreen, request: HttpRequest, job_type: JobType) -> HttpResponse:
    fields = list_fields(job_type)
    context = {"submit": "Enqueue", "hidden": [("job_type", job_type.name)], "back_url": screen.list_url()}
    title = f"Enqueue {job_type.name}"
    if CONFIRMED not in request.POST:
        form = EnqueueForm(fields_of_type=fields, verb=ENQUEUE_JOB)
        return _draw(screen, request, title, {**context, "form": form})
    form = EnqueueForm(request.POST, fields_of_type=fields, verb=ENQUEUE_JOB)
    handle = _attempt(
        form,
        lambda arguments: enqueue_by_name(
            job_type.name, arguments, actor=request.user, source="ui", reason=_reason(form), **form.values()
        ),
    )
    if handle is None:
        return _draw(screen, request, title, {**context, "form": form})
    _tell_new_job(screen, request, handle.id, "enqueued")
    return HttpResponseRedirect(screen.list_url())


def _clone(screen: ActingScreen, request: HttpRequest, pk: int) -> HttpResponse:
    def carry_out(form: ArgumentsForm, arguments: dict[str, Any]) -> HttpResponse:
        handle = clone_job(
            pk, arguments=arguments, actor=request.user, source="ui", reason=_reason(form), **form.values()
        )
        _tell_new_job(screen, request, handle.id, f"enqueued as a clone of job {pk}")
        return HttpResponseRedirect(screen.page_url(pk))

    return _answer_about_one(screen, request, pk, CLONE_JOB, CloneForm, carry_out)


def _edit(screen: ActingScreen, request: HttpRequest, pk: int) -> HttpResponse:
    def carry_out(form: ArgumentsForm, arguments: dict[str, Any]) -> HttpResponse:
        report = edit_job(pk, arguments, actor=request.user, source="ui", reason=_reason(form))
        tell_outcome(screen, request, EDIT_JOB, f"job {pk}", report)
        return HttpResponseRedirect(screen.page_url(pk))

    return _answer_about_one(screen, request, pk, EDIT_JOB, ArgumentsForm, carry_out)


def _answer_about_one(  # noqa: PLR0917
    screen: ActingScreen,
    request: HttpRequest,
    pk: int,
    verb: Verb,
    form_class: type[ArgumentsForm],
    carry_out: Callable[[ArgumentsForm, dict[str, Any]], HttpResponse],
) -> HttpResponse:
    screen.require(request, verb)
    job = screen.get_object(request, str(pk))
    if job is None:
        return HttpResponseRedirect(screen.page_url(pk))
    screen.require(request, verb, job)
    try:
        job_type: JobType = registry.get(job.job_type.name)
    except UnknownJobType as error:
        screen.message_user(request, str(error), messages.ERROR)
        return HttpResponseRedirect(screen.page_url(pk))
    if not is_for_hands(job_type):
        words = f"{job_type.name!r} is a job type of the broker itself; its jobs are left as they are."
        screen.message_user(request, words, messages.ERROR)
        return HttpResponseRedirect(screen.page_url(pk))
    stored = _stored_arguments(job)
    fields = list_fields(job_type, stored)
    title = f"{verb.label}: {screen.phrase_of(job)}"
    context: dict[str, Any] = {"submit": "Save" if verb is EDIT_JOB else verb.label, "back_url": screen.page_url(pk)}
    mark = _mark(stored)
    if verb is EDIT_JOB:
        context["hidden"] = [(STORED, mark)]
    is_outdated = verb is EDIT_JOB and request.POST.get(STORED, mark) != mark
    if is_outdated:
        words = "Somebody changed the arguments meanwhile. Nothing was saved: these are the new ones."
        screen.message_user(request, words, messages.ERROR)
    if CONFIRMED not in request.POST or is_outdated:
        form = form_class(fields_of_type=fields, verb=verb)
        return _draw(screen, request, title, {**context, "form": form})
    form = form_class(request.POST, fields_of_type=fields, verb=verb)
    response = _attempt(form, lambda arguments: carry_out(form, arguments))
    return response or _draw(screen, request, title, {**context, "form": form})


def _attempt[T](form: ArgumentsForm, carry_out: Callable[[dict[str, Any]], T]) -> T | None:
    """Do it with what the form says; ``None`` when the form has to be shown again, with its errors."""
    if not form.is_valid():
        return None
    try:
        return carry_out(form.arguments())
    except NotPermitted as error:
        raise PermissionDenied(str(error)) from error
    except PgbrokerError as error:
        form.blame(error)
    return None


def _draw(screen: ActingScreen, request: HttpRequest, title: str, context: dict[str, Any]) -> HttpResponse:
    request.current_app = screen.admin_site.name
    shared = {**screen.admin_site.each_context(request), "opts": screen.opts, "media": screen.media}
    return TemplateResponse(request, TEMPLATE, {**shared, "title": title, "confirmed": CONFIRMED, **context})


def _tell_new_job(screen: ActingScreen, request: HttpRequest, job_id: int, done: str) -> None:
    words = format_html("{} {}.", link(screen.admin_site, Job, job_id, f"Job {job_id}"), done)
    screen.message_user(request, words, messages.SUCCESS)


def _reason(form: ArgumentsForm) -> str | None:
    return form.cleaned_data["reason"] or None


def _mark(arguments: dict[str, Any]) -> str:
    """Differs when the arguments do."""
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()


def _stored_arguments(job: Any) -> dict[str, Any]:
    if hasattr(job, "arguments"):
        return dict(job.arguments)
    try:
        return dict(job.payload.arguments)
    except ObjectDoesNotExist:
        return {}
