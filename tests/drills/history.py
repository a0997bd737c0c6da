"""Reads, from the tables and the logs alone, what a history of many jobs must not contain. Called after every drill."""

import re
from collections.abc import Collection, Iterable
from typing import Any

import psycopg

from django_pgbroker.domain.verdicts import LOST_WAITING
from tests.scenarios.processes import ManageProcess

#: What is wrong, by the statement that finds it; each answers the ids of jobs. Numbers are the states and outcomes of
#: django_pgbroker.domain.states, written out: this file is a second opinion.
FAULTS = {
    "is not in exactly one place": """
        select id from unnest(%(confirmed)s::bigint[]) as id
        where (select count(*) from pgbroker.job where job.id = id.id)
            + (select count(*) from pgbroker.archived_job as old where old.id = id.id) <> 1""",
    "is archived twice": "select id from pgbroker.archived_job group by id having count(*) > 1",
    "is live and archived": "select id from pgbroker.job join pgbroker.archived_job using (id)",
    "is live without a payload": """
        select id from pgbroker.job where not exists (select from pgbroker.job_payload where job_id = id)""",
    "has left a payload behind": """
        select job_id from pgbroker.job_payload where not exists (select from pgbroker.job where id = job_id)""",
    "completed twice": """
        select job_id from pgbroker.execution where outcome = 1 group by job_id having count(*) > 1""",
    "is completed without an execution that says so": """
        select id from pgbroker.archived_job where state = 10
        and not exists (select from pgbroker.execution where job_id = id and outcome = 1)""",
    "has an execution that completed and is not completed": """
        select job_id from pgbroker.execution where outcome = 1
        and not exists (select from pgbroker.archived_job where id = job_id and state = 10)""",
    "has a claim that was recorded twice": """
        select job_id from pgbroker.execution group by job_id, lease_token having count(*) > 1""",
    "ran again after an end": """
        select job_id from (
            select job_id, outcome, lead(lease_token) over (partition by job_id order by lease_token) as next_token
            from pgbroker.execution
        ) as run where next_token is not null and outcome in (1, 5)""",
    "was claimed before its last claim had ended": """
        select job_id from (
            select job_id, finished_at, lead(leased_at) over (partition by job_id order by lease_token) as next_at
            from pgbroker.execution
        ) as run where next_at < finished_at - interval '1 second'""",
    "was called lost before its lease was over": """
        select job_id from pgbroker.execution
        where outcome = 6 and finished_at < leased_at + %(lease_seconds)s * interval '1 second'""",
    "ran under a token that no execution knows": """
        select effect.job_id from effect
        where not exists (
            select from pgbroker.execution as run
            where run.job_id = effect.job_id and run.lease_token = effect.lease_token)
        and not exists (
            select from pgbroker.job where job.id = effect.job_id and job.lease_token = effect.lease_token)""",
    "completed without its last effect": """
        select job_id from pgbroker.execution as run
        where outcome = 1 and not exists (
            select from effect
            where effect.job_id = run.job_id and effect.lease_token = run.lease_token and effect.what = 'done')""",
    "counts attempts, deaths or interruptions that its executions do not show": """
        select id from pgbroker.archived_job where (attempt, deaths, interruptions) <> (
            select count(*) filter (where outcome not in (4, 7) and reason is distinct from %(waited)s),
                count(*) filter (where outcome = 6 and reason <> %(waited)s), count(*) filter (where outcome = 7)
            from pgbroker.execution where job_id = id)""",
    "is of an outcome that the counters of the minutes do not agree with": """
        select -outcome from (select outcome, count(*) as jobs from pgbroker.execution group by outcome) as run
        full join (select outcome, sum(jobs) as jobs from pgbroker.stat_minute group by outcome) as stat using (outcome)
        where run.jobs is distinct from stat.jobs""",
}

_REFUSED = re.compile(r"lease\.lost: .*refused.*\btoken=(\d+)")

_UNRECORDED_ENDS = """
select distinct lease_token
from effect
join pgbroker.execution as run using (job_id, lease_token)
where what = 'done' and outcome = 6 and process_id = %s
"""


def find_faults(
    connection: psycopg.Connection[Any], confirmed: Collection[int], *, lease_seconds: float = 2
) -> list[str]:
    """What is wrong with the jobs of a database, one sentence a kind of fault; empty when all is well.

    Args:
        connection: to the database of the drill, which holds the table ``effect``.
        confirmed: the ids of all jobs whose enqueue was confirmed.
        lease_seconds: the shortest lease of the drill.
    """
    params = {"confirmed": list(confirmed), "lease_seconds": lease_seconds, "waited": LOST_WAITING}
    found = {fault: [row[0] for row in connection.execute(text, params)] for fault, text in FAULTS.items()}
    return [f"job {', '.join(map(str, ids[:10]))} {fault} ({len(ids)})" for fault, ids in found.items() if ids]


def find_silent_refusals(connection: psycopg.Connection[Any], survivors: Iterable[ManageProcess]) -> list[str]:
    """Verdicts that were refused, because the job had been taken back, and that their worker did not log.

    Args:
        connection: to the database of the drill.
        survivors: the workers that had time to see their handlers end; a killed one says nothing.
    """
    faults = []
    for worker in survivors:
        ended = {token for (token,) in connection.execute(_UNRECORDED_ENDS, [worker.pid])}
        logged = {int(token) for token in _REFUSED.findall(worker.output)}
        faults += [
            f"worker {worker.pid} did not log that its verdict under token {t} was refused" for t in ended - logged
        ]
    return faults
