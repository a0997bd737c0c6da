"""The one button of the screens: a form that POSTs. On ``django-admin-extra-buttons``, whose own buttons act on GET.

What its handler leaves open is closed here: no method but POST, staff of whatever site only, no redirect to a header.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast, override
from urllib.parse import urljoin

from admin_extra_buttons.buttons import StandardButton
from admin_extra_buttons.handlers import ButtonHandler
from django.contrib.admin.views.main import ERROR_FLAG
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse

from django_pgbroker.admin.keyset import AFTER, BEFORE
from django_pgbroker.domain.verbs import Verb

type View = Callable[..., HttpResponseBase]


class PostButton(StandardButton):
    """Draws itself as a small form."""

    default_template = "django_pgbroker/admin/post_button.html"

    @property
    @override
    def html_attrs(self) -> dict[str, str]:
        """Made anew each time: the base class would add to one dict for as long as the process lives."""
        return {"type": "submit", "class": f"pgb-button {self.handler.config['tone']}".rstrip()}

    @property
    def is_apart(self) -> bool:
        """Whether it stands away from the buttons that take nothing away."""
        return bool(self.handler.config["tone"])

    @property
    def is_for_all(self) -> bool:
        """Whether it is for all rows that the filters of a list leave."""
        return bool(self.handler.config["is_for_all"])

    @override
    def can_render(self) -> bool:
        """Whether the user may do this, and the state allows it."""
        return bool(self.handler.config["is_offered"](self.handler.model_admin, self.request, self.original))

    @property
    @override
    def url(self) -> str:
        """Where it posts to: with the object's key, or with the filters of the list."""
        name = f"admin:{self.handler.url_name}"
        site = self.handler.model_admin.admin_site.name
        if self.change_form and self.original:
            return reverse(name, args=(self.original.pk,), current_app=site)
        filters = self.request.GET.copy()
        for position in (BEFORE, AFTER, ERROR_FLAG):
            filters.pop(position, None)
        return reverse(name, current_app=site) + (f"?{filters.urlencode()}" if filters else "")


class PostHandler(ButtonHandler):
    """The address behind a button."""

    button_class = PostButton

    @override
    def __call__(self, model_admin: Any, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Staff of this site, then POST with its token, then the view, which asks for the permission."""

        site = model_admin.admin_site
        if not site.has_permission(request):
            # who logs in then comes back to the page with the button: the address itself takes no GET
            page = urljoin(request.get_full_path(), f"..?{request.GET.urlencode()}".rstrip("?"))
            return redirect_to_login(page, reverse("admin:login", current_app=site.name))
        answer: HttpResponseBase = site.admin_view(partial(self._answer, model_admin))(request, *args, **kwargs)
        return answer

    def _answer(self, model_admin: Any, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "POST":
            return cast("HttpResponseBase", self.func(model_admin, request, *args, **kwargs))
        request.current_app = model_admin.admin_site.name
        context = {
            **model_admin.admin_site.each_context(request),
            "opts": model_admin.opts,
            "media": model_admin.media,
            "title": "Nothing was done",
            "label": self.config["label"],
            "back_url": model_admin.page_url(kwargs["pk"]) if "pk" in kwargs else model_admin.list_url(),
        }
        refused = TemplateResponse(request, "django_pgbroker/admin/post_only.html", context, status=405)
        refused["Allow"] = "POST"
        return refused


def make_button(
    verb: Verb,
    answer: View,
    *,
    is_offered: Callable[[Any, HttpRequest, Any], bool],
    is_for_one: bool,
    label: str = "",
    tone: str = "",
    is_for_all: bool = False,
) -> tuple[str, PostHandler]:
    """A button and its address: ``<id>/<verb>/`` for one object, ``<verb>/`` for a list.

    Args:
        verb: what it does; the address is called after it.
        answer: called with the screen, the request and, for one object, its key.
        is_offered: whether to draw it, of the screen, the request and the object (``None`` on a list).
        is_for_one: whether it stands on the page of an object.
        label: in place of the verb's.
        tone: the class that says what it does, where it takes something away.
        is_for_all: whether it is for all rows that the filters of a list leave.

    Returns:
        The name of the attribute of the screen under which it must stand, and the handler.
    """
    word = verb.name.partition(".")[2]
    name = f"{word}_one" if is_for_one else f"{word}_matching"

    def on_page(screen: Any, request: HttpRequest, pk: int) -> HttpResponseBase:
        return answer(screen, request, pk)

    def on_list(screen: Any, request: HttpRequest) -> HttpResponseBase:
        return answer(screen, request)

    view: Any = on_page if is_for_one else on_list
    view.__name__ = name
    handler = PostHandler(
        view,
        pattern=f"<int:pk>/{word}/" if is_for_one else f"{word}/",
        verb=verb,
        label=label or verb.label,
        change_form=is_for_one,
        change_list=not is_for_one,
        is_offered=is_offered,
        tone=tone,
        is_for_all=is_for_all,
    )
    return name, handler
