"""How long a failed job waits before its next attempt. Used by job types and by the worker's verdicts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from django_pgbroker.domain.errors import ConfigurationError, show_value

LONGEST_DELAY_SECONDS = 365 * 24 * 3600.0


@runtime_checkable
class RetryPolicy(Protocol):
    """Anything that says how long to wait after a failed attempt."""

    def delay_seconds(self, attempt: int, random: Callable[[], float]) -> float:
        """Seconds to wait after ``attempt`` (1 is the first) failed; ``random()`` answers a number in [0, 1)."""
        ...


@dataclass(frozen=True)
class Exponential:
    """Waits that double, up to a cap, spread by full jitter.

    The longest wait after attempt n is ``min(cap_seconds, base_seconds * factor ** (n - 1))``. With ``jitter`` the wait
    is drawn evenly from zero to that bound ("full jitter" in the AWS Architecture Blog's "Exponential Backoff And
    Jitter"), so it may be close to zero; without it the wait is the bound itself.

    Args:
        base_seconds: the longest wait after the first attempt.
        factor: how much the bound grows with each attempt, 1 or more.
        cap_seconds: the bound never exceeds this.
        jitter: whether to spread the waits.

    Raises:
        ConfigurationError: a number that is negative, not finite, or makes no sense.
    """

    base_seconds: float = 1.0
    factor: float = 2.0
    cap_seconds: float = 256.0
    jitter: bool = True

    def __post_init__(self) -> None:
        _check_seconds("Exponential.base_seconds", self.base_seconds)
        _check_seconds("Exponential.cap_seconds", self.cap_seconds)
        if not _is_number(self.factor) or not 1 <= self.factor <= 1000:
            raise ConfigurationError(f"Exponential.factor must be from 1 to 1000, not {show_value(self.factor)}")
        if self.base_seconds > self.cap_seconds:
            raise ConfigurationError(
                f"Exponential.base_seconds ({self.base_seconds}) exceeds cap_seconds ({self.cap_seconds})"
            )

    def delay_seconds(self, attempt: int, random: Callable[[], float]) -> float:
        """Seconds to wait after ``attempt`` failed; right for any attempt, however large."""
        bound = self._bound_seconds(max(attempt, 1) - 1)
        return bound * random() if self.jitter else bound

    def _bound_seconds(self, exponent: int) -> float:
        if self.base_seconds == 0:
            return 0.0
        try:
            return float(min(self.cap_seconds, self.base_seconds * float(self.factor) ** exponent))
        except OverflowError:
            # near attempt 1,024 the power leaves what a float can hold
            return float(self.cap_seconds)


@dataclass(frozen=True)
class Constant:
    """The same wait after every attempt.

    Args:
        seconds: how long; no jitter is added.

    Raises:
        ConfigurationError: a number that is negative or not finite.
    """

    seconds: float

    def __post_init__(self) -> None:
        _check_seconds("Constant.seconds", self.seconds)

    def delay_seconds(self, attempt: int, random: Callable[[], float]) -> float:
        """Seconds to wait after ``attempt`` failed."""
        return float(self.seconds)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_seconds(name: str, value: float) -> None:
    if not _is_number(value) or not 0 <= value <= LONGEST_DELAY_SECONDS:
        raise ConfigurationError(
            f"{name} must be a number of seconds from 0 to {LONGEST_DELAY_SECONDS:.0f}, not {show_value(value)}"
        )
