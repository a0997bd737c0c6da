"""Django signals of what happens to jobs; sent by enqueue, the workers and the reclaimer, received by the project.

Every receiver gets ``sender``, the job type (``JobType``, or None where this process does not know it), and by keyword
``job_id``, ``job_type`` (its name), ``queue``, ``tenant`` (None for ``job_lost``) and ``attempt``; further ones below.

All but the first two come after the outcome is committed, in a thread of their own, and at most once: a process that
dies, or receivers that are slower than the jobs for long, lose some. What must not be missed is read from the history.
"""

from django.dispatch import Signal

#: In the caller's transaction, right after the insert; ``attempt`` is 0. Also: ``using``, the alias of the database.
job_enqueued = Signal()

#: In the thread or task of the handler, right before it begins.
job_started = Signal()

#: The job is completed. Also: ``outcome`` (``domain.states.Outcome``), ``reason``, ``error`` (``ErrorRecord`` or None)
#: and ``run_seconds``, as for all below but ``job_lost``.
job_succeeded = Signal()

#: An attempt has failed or timed out; ``job_retried`` or ``job_dead`` follows.
job_failed = Signal()

#: A failed attempt is followed by another one. Also: ``delay_seconds``.
job_retried = Signal()

#: The job is a dead letter: its attempts, or the interruptions it is allowed, are spent.
job_dead = Signal()

#: The job is cancelled, by its handler or by somebody else while it ran.
job_cancelled = Signal()

#: The lease of a job lapsed and the job was taken back. Also: ``next_state`` (``JobState``), ``worker_id``.
job_lost = Signal()
