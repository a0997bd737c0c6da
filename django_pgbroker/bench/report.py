"""What every measurement reports beside its figures, and how figures are made of samples."""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from django_pgbroker.bench.errors import BenchError
from django_pgbroker.store.gateway import Gateway


@dataclass(frozen=True, kw_only=True)
class Report(ABC):
    """The conditions of a measurement; its figures are the fields of the class below this one."""

    server_version: str
    cpus: int

    @abstractmethod
    def summary(self) -> str:
        """The figures in one line for people."""


def conditions(gateway: Gateway) -> dict[str, Any]:
    """The server's version and the number of processors of this machine, as arguments of a ``Report``."""
    [(version,)] = gateway.connection.execute("show server_version", prepare=False).fetchall()
    return {"server_version": str(version).split()[0], "cpus": os.cpu_count() or 0}


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that ``percent`` of all samples do not exceed.

    Raises:
        BenchError: there is no sample.
    """
    if not samples:
        raise BenchError("nothing was seen in a part of the run; make it longer")
    return sorted(samples)[max(math.ceil(len(samples) * percent / 100) - 1, 0)]


def milliseconds(seconds: Sequence[float], percent: float) -> float:
    """A percentile of seconds, in milliseconds."""
    return round(percentile(seconds, percent) * 1000, 3)


def middle(runs: Sequence[dict[str, float]], key: str) -> float:
    """The median of one figure over all runs."""
    return median(run[key] for run in runs)


def rounded(run: dict[str, float]) -> dict[str, float]:
    """The figures of one run with as many digits as mean something."""
    return {key: round(value, 3 if key == "ratio" else 1) for key, value in run.items()}
