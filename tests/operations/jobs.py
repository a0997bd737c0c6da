"""Handlers that the tests of the operations enqueue."""

from django_pgbroker import job
from django_pgbroker.registry import registry


@job("tests.add")
def add(left: int, right: int = 1) -> int:
    return left + right


@job(
    "tests.note",
    queue="notes",
    priority="backfill",
    max_attempts=7,
    timeout=60,
    version=3,
    aliases=["tests.old_note"],
)
def note(text: str, queue: str = "") -> None: ...


@job("tests.forget", store_result=False)
def forget() -> None: ...


@job("tests.any")
def take_anything(**values: object) -> None: ...


#: Known to the tests of this folder alone, whose conftest registers them for each test.
OURS = {registry.get(name) for name in registry.names() if registry.get(name).handler.__module__ == __name__}
for each in OURS:
    for name in (each.name, *each.aliases):
        registry.forget(name)
