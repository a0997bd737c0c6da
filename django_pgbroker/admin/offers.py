"""Give a screen its acts: buttons, actions and the menu for all that match. The decorator of the screens with verbs."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

from django_pgbroker.admin.act import Act
from django_pgbroker.admin.acting import ActingScreen
from django_pgbroker.admin.post_button import make_button


def offers[S: type[ActingScreen]](*acts: Act) -> Callable[[S], S]:
    """A button on each row's page for every act; for those on many an action, and a button above the list."""

    def add(screen: S) -> S:
        screen.acts = acts
        bulk = [act for act in acts if act.is_bulk]
        screen.actions = [_make_action(act) for act in bulk]  # type: ignore[assignment]
        matching = [act for act in bulk if act.verb.filter_states & screen.states]
        for name, handler in [*map(_make_button_for_one, acts), *map(_make_button_for_all, matching)]:
            setattr(screen, name, handler)
        return screen

    return add


def _make_button_for_one(act: Act) -> tuple[str, Any]:
    return make_button(
        act.verb,
        lambda screen, request, pk: screen.act_on_one(request, act, pk),
        is_offered=lambda screen, request, row: screen.is_offered_for_one(request, act, row),
        is_for_one=True,
        tone=act.tone,
    )


def _make_button_for_all(act: Act) -> tuple[str, Any]:
    return make_button(
        act.verb,
        lambda screen, request: screen.act_on_matching(request, act),
        is_offered=lambda screen, request, _: screen.is_offered_for_all(request, act),
        is_for_one=False,
        tone=act.tone,
        is_for_all=True,
    )


def _make_action(act: Act) -> Callable[..., HttpResponse | None]:
    def action(screen: ActingScreen, request: HttpRequest, _: Any) -> HttpResponse | None:
        return screen.act_on_selection(request, act)

    action.__name__ = act.name
    action.short_description = act.verb.label  # type: ignore[attr-defined]
    return action
