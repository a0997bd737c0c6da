"""Debian's Chromium, a live server with a strict policy, and an operator who is logged in."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import Client, override_settings
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

#: Set in CI: there a missing browser is a failure.
REQUIRED = "PGBROKER_REQUIRE_BROWSER"


def find_program() -> str:
    """Where Chromium is; where there is none, the test is skipped, or fails if one is required."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    reason = "there is no Chromium on this machine; install one (apt-get install chromium)"
    if os.environ.get(REQUIRED):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def chromium(site: str) -> Iterator[Browser]:
    """One browser for the tests of a module: as long as it runs, an event loop does in this thread."""
    program = find_program()
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        # the sandbox wants more than containers and root have; every page is ours
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(django_db_setup: None) -> Iterator[str]:
    """The address of the admin on a live server; it stops before the database is dropped."""
    middleware = ["tests.browser.policy.strict_policy", *settings.MIDDLEWARE]
    with override_settings(MIDDLEWARE=middleware, ALLOWED_HOSTS=["localhost"]):
        server = LiveServer("localhost")
        try:
            yield f"{server.url}/admin/django_pgbroker/"
        finally:
            server.stop()


@pytest.fixture
def page(chromium: Browser, site: str, broker_database: None) -> Iterator[Page]:
    """An operator's browser. Whatever its console or the policy complains of fails the test."""
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root"))
    context = chromium.new_context(base_url=site, viewport={"width": 1280, "height": 900})
    session: Any = {"name": "sessionid", "value": client.cookies["sessionid"].value}
    session |= {"domain": "localhost", "path": "/"}
    context.add_cookies([session])
    context.set_default_timeout(15_000)
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.location["url"].endswith("/favicon.ico"):
            complaints.append(message.text)

    found = context.new_page()
    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    found.on("console", hear)
    yield found
    context.close()
    connections.close_all()
    assert complaints == []
