"""All duties, one a line. Workers run every one of them; dedicated processes run their share."""

from django_pgbroker.maintenance.duty import Duty
from django_pgbroker.maintenance.expirer import Expirer
from django_pgbroker.maintenance.overdue import Overdue
from django_pgbroker.maintenance.partitioner import Partitioner
from django_pgbroker.maintenance.presence import Presence
from django_pgbroker.maintenance.promoter import Promoter
from django_pgbroker.maintenance.reclaimer import Reclaimer
from django_pgbroker.maintenance.resumer import Resumer
from django_pgbroker.maintenance.retention import Retention
from django_pgbroker.maintenance.sampler import Sampler
from django_pgbroker.maintenance.stat_pruner import StatPruner
from django_pgbroker.maintenance.unknown_types import UnknownTypes

#: What ``pgbroker_scheduler`` runs: everything that makes jobs due.
SCHEDULER_DUTIES: tuple[type[Duty], ...] = (Promoter, Resumer)

#: What ``pgbroker_reaper`` runs: everything that recovers, ends, measures and tidies.
REAPER_DUTIES: tuple[type[Duty], ...] = (
    Reclaimer,
    Expirer,
    Overdue,
    Partitioner,
    Presence,
    Retention,
    Sampler,
    StatPruner,
    UnknownTypes,
)

#: What a worker runs unless it is started with ``--no-maintenance``.
DUTIES: tuple[type[Duty], ...] = SCHEDULER_DUTIES + REAPER_DUTIES
