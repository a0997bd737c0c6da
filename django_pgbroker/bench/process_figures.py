"""Memory and processor time of another process, from /proc: only Linux has it, and nothing must be installed."""

import os
from pathlib import Path

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def resident_mb(process_id: int) -> float | None:
    """The resident memory (VmRSS) of a process in units of 1,000,000 bytes; None where there is no /proc."""
    try:
        lines = Path(f"/proc/{process_id}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("VmRSS:")), None)
    return None if kilobytes is None else round(int(kilobytes) * 1024 / 1_000_000, 1)


def processor_seconds(process_id: int) -> float | None:
    """The seconds that a process has been on a processor, in user and system mode; None where there is no /proc."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # the second field, a name in parentheses, may hold spaces
    after_name = text.rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / _TICKS_A_SECOND
