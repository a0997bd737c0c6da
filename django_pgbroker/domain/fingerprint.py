"""Group errors that are the same fault: a stable number of an exception's class and the functions it passed through."""

import hashlib
from types import TracebackType

#: The innermost functions tell faults apart; further out is the frame of whoever called the handler.
_FRAMES = 5


def fingerprint_error(error: BaseException) -> int:
    """A signed 64-bit number that is equal for errors of one class raised along the same functions.

    Line numbers, messages and addresses do not count: they change between deploys and calls.
    """
    names = [f"{type(error).__module__}.{type(error).__qualname__}", *_function_names(error.__traceback__)[-_FRAMES:]]
    digest = hashlib.blake2b("\n".join(names).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _function_names(traceback: TracebackType | None) -> list[str]:
    names = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        names.append(f"{traceback.tb_frame.f_globals.get('__name__', '?')}.{code.co_qualname}")
        traceback = traceback.tb_next
    return names
