"""Handlers that the tests of the operations enqueue."""

from django_pgbroker import job


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
