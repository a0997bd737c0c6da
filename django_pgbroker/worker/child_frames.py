"""What a worker and its child processes say to each other: frames over a socket. The page says what must not wait."""

import pickle
import struct
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.states import JobState, Outcome

_HEADER = struct.Struct("<cI")
_COMPLETED = struct.Struct("<qqq")


class Frame(Enum):
    """What a frame says; to the child: BRIEF, CLAIMS and RECALL; from it: the others, and RECALL as the answer."""

    BRIEF = b"b"
    CLAIMS = b"c"
    RECALL = b"r"
    READY = b"y"
    FAILED = b"f"
    COMPLETED = b"d"
    VERDICT = b"v"
    RETIRED = b"e"
    PROGRESS = b"p"
    MEMORY = b"m"


class ChildBrief(NamedTuple):
    """What a child must know before its first job.

    Args:
        settings_module: of Django.
        sys_path: of the worker.
        python_path: the environment's ``PYTHONPATH`` as the worker has it.
        databases: by alias, what of its settings says where the server and the database are.
        job_types: by id, the name and the module of the handler.
        queues: by id, the name.
        database: the alias of the database that holds the jobs.
        result_limit_bytes: the most JSON that a result may take.
        memory_limit_mb: of the process; None is without limit.
        max_jobs: after which it ends; None is never.
    """

    settings_module: str
    sys_path: list[str]
    python_path: str | None
    databases: dict[str, dict[str, Any]]
    job_types: dict[int, tuple[str, str]]
    queues: dict[int, str]
    database: str
    result_limit_bytes: int
    memory_limit_mb: int | None
    max_jobs: int | None


def pack(frame: Frame, content: bytes = b"") -> bytes:
    """One frame."""
    return _HEADER.pack(frame.value, len(content)) + content


def pack_object(frame: Frame, content: object) -> bytes:
    """One frame with anything that our own code has made."""
    return pack(frame, pickle.dumps(content))


def unpack_object(content: bytes) -> Any:
    """What ``pack_object`` was given; both ends of the socket are ours."""
    return pickle.loads(content)  # noqa: S301


def pack_claims(claims: Sequence[ClaimedJob], tenants: Mapping[int, str]) -> bytes:
    """Claims to run, and the names of their tenants."""
    names = {claim.tenant_id: tenants[claim.tenant_id] for claim in claims}
    return pack_object(Frame.CLAIMS, ([tuple(claim) for claim in claims], names))


def unpack_claims(content: bytes) -> tuple[list[ClaimedJob], dict[int, str]]:
    """As ``pack_claims`` was given them."""
    rows, names = unpack_object(content)
    return [ClaimedJob._make(row) for row in rows], names


def pack_verdict(verdict: Verdict) -> bytes:
    """A verdict; the most usual one in few bytes."""
    job_id, token, outcome, _, _, ran, result, _, reason, is_recorded = verdict
    if outcome is Outcome.COMPLETED and result is None and reason is None and not is_recorded:
        return pack(Frame.COMPLETED, _COMPLETED.pack(job_id, token, ran))
    return pack_object(Frame.VERDICT, verdict)


def unpack_completed(content: bytes) -> Verdict:
    """The verdict of a COMPLETED frame."""
    job_id, token, ran = _COMPLETED.unpack(content)
    return Verdict(job_id, token, Outcome.COMPLETED, JobState.COMPLETED, 0.0, ran)


class FrameReader:
    """Cuts what arrives into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Frame, bytes]]:
        """The frames that are complete with this data."""
        buffer = self._buffer
        buffer += data
        position = 0
        try:
            while len(buffer) - position >= _HEADER.size:
                kind, size = _HEADER.unpack_from(buffer, position)
                end = position + _HEADER.size + size
                if len(buffer) < end:
                    return
                content = bytes(buffer[position + _HEADER.size : end])
                position = end
                yield Frame(kind), content
        finally:
            del buffer[:position]
