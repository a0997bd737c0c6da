"""From a button to its deed: ask where it must be asked, call the operation, tell the outcome. Called by every act."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from django_pgbroker.admin.act import Act
from django_pgbroker.admin.choice import Choice
from django_pgbroker.admin.outcome import tell_outcome
from django_pgbroker.domain.errors import NotPermitted, PgbrokerError
from django_pgbroker.domain.job_filter import JobFilter

#: What a confirmation sends beside its form.
CONFIRMED = "confirmed"

#: A button that would say more says the verb alone.
_LONGEST_BUTTON = 32

TEMPLATE = "django_pgbroker/admin/confirmation.html"


def confirm_or_carry_out(screen: Any, request: HttpRequest, act: Act, choice: Choice) -> HttpResponse:
    """Answer a button or an action.

    Args:
        screen: where it stands.
        request: a POST, of a user whose permission has been checked.
        act: what is to be done.
        choice: to what.
    """
    form_class = act.bulk_form if act.bulk_form and isinstance(choice.target, JobFilter) else act.form
    if CONFIRMED not in request.POST and (choice.is_many or act.always_asks):
        form = form_class(verb=act.verb, subject=choice.subject)
        return _ask(screen, request, act, choice, form)
    form = form_class(request.POST, verb=act.verb, subject=choice.subject)
    if not form.is_valid():
        return _ask(screen, request, act, choice, form)
    try:
        result = act.carry_out(
            choice.target, **form.values(), actor=request.user, reason=form.cleaned_data["reason"] or None, source="ui"
        )
    except NotPermitted as error:
        raise PermissionDenied(str(error)) from error
    except PgbrokerError as error:
        if CONFIRMED in request.POST:
            form.add_error(None, str(error))
            return _ask(screen, request, act, choice, form)
        screen.message_user(request, str(error), messages.ERROR)
    else:
        tell_outcome(screen, request, act.verb, choice.phrase, result)
    return HttpResponseRedirect(choice.back_url)


def _ask(screen: Any, request: HttpRequest, act: Act, choice: Choice, form: Any) -> HttpResponse:
    # the phrase may hold braces of its own, so it goes in last
    request.current_app = screen.admin_site.name
    before, _, after = act.question.partition("{}")
    whole = f"{before}{choice.short}{after}"
    context = {
        **screen.admin_site.each_context(request),
        "opts": screen.model._meta,
        "media": screen.media,
        "title": f"{before}{choice.phrase}{after}",
        "act": act,
        "choice": choice,
        "form": form,
        "confirmed": CONFIRMED,
        "answer": whole if choice.short and len(whole) <= _LONGEST_BUTTON else act.verb.label,
    }
    return TemplateResponse(request, TEMPLATE, context)
