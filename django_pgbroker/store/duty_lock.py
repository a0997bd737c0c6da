"""The lock that keeps a duty to one process at a time. Called by the maintenance runner."""

from hashlib import blake2b

from django_pgbroker.store.gateway import Gateway


def try_duty_lock(gateway: Gateway, duty_name: str) -> bool:
    """Whether this transaction now holds the duty; the lock ends with the transaction, however that ends."""
    (is_held,) = gateway.fetch_one("try_duty_lock", {"key": duty_key(duty_name)})
    return bool(is_held)


def duty_key(duty_name: str) -> int:
    """The advisory lock of a duty: eight bytes of a digest, the same in every process and release."""
    digest = blake2b(f"django_pgbroker duty {duty_name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
