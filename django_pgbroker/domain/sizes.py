"""How much room something takes, in words for people. Used by the commands."""

_UNITS = ("B", "kB", "MB", "GB", "TB")


def describe_bytes(size: int) -> str:
    """A size in one unit of 1024 of the one before: ``512 B``, ``8.0 kB``, ``123 MB``."""
    amount = float(size)
    for unit in _UNITS:
        if amount < 1000 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.1f} {unit}" if amount < 10 and unit != "B" else f"{amount:,.0f} {unit}"
