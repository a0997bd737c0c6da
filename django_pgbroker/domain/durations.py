"""How long something takes or is ago, in words for people. Used by the screens and by the commands."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def describe_seconds(seconds: float) -> str:
    """A duration in at most two units: ``340 ms``, ``12 s``, ``3 min 20 s``, ``5 d 4 h``.

    Args:
        seconds: the duration; a negative one (two clocks, a row from the future) counts as zero.
    """
    seconds = max(seconds, 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    for position, (size, unit) in enumerate(_UNITS):
        if whole >= size:
            count, rest = divmod(whole, size)
            smaller = _UNITS[position + 1 : position + 2]
            if smaller and rest // smaller[0][0]:
                return f"{count} {unit} {rest // smaller[0][0]} {smaller[0][1]}"
            return f"{count} {unit}"
    raise AssertionError("unreachable: the smallest unit is one second")


def describe_age(seconds: float) -> str:
    """A moment in the past, roughly, in one unit: ``just now``, ``95 s ago``, ``78 min ago``, ``9 d ago``."""
    if seconds < 1:
        return "just now"
    return f"{_roughly(seconds)} ago"


def describe_wait(seconds: float) -> str:
    """A moment to come, roughly, in one unit: ``in 95 s``, ``in 9 d``."""
    return f"in {_roughly(seconds)}"


def _roughly(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
