"""The policy that the screens must bear: nothing inline, nothing from elsewhere. Middleware of the live server."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

POLICY = "default-src 'self'; form-action 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'"


def strict_policy(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Send the policy with every page."""

    def answer(request: HttpRequest) -> Any:
        response = get_response(request)
        response["Content-Security-Policy"] = POLICY
        return response

    return answer
