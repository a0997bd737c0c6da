"""Counters by minute live for seven days."""

from django_pgbroker.maintenance.stat_pruner import StatPruner


def add_minutes(rows, days_old, count):
    rows.run(
        "insert into pgbroker.stat_minute select date_trunc('minute', now()) - %s * interval '1 day'"
        " - n * interval '1 minute', 1, 1, 1, 1, 0, 0, 1, 0, 0 from generate_series(1, %s) as n",
        days_old,
        count,
    )


def test_counters_older_than_seven_days_go_in_batches_and_younger_ones_stay(gateway, rows):
    add_minutes(rows, days_old=7, count=5)
    add_minutes(rows, days_old=6, count=3)

    swept = [StatPruner().tick(gateway, batch=3) for _ in range(2)]

    assert [(each.moved, each.has_more) for each in swept] == [(3, True), (2, False)]
    assert rows.one("select count(*) from pgbroker.stat_minute") == 3


def test_counters_that_somebody_holds_are_skipped(gateway, rival, rows):
    add_minutes(rows, days_old=8, count=2)
    with rival.transaction():
        rival.connection.execute("select 1 from pgbroker.stat_minute order by minute limit 1 for update")
        assert StatPruner().tick(gateway, batch=10).moved == 1
    assert StatPruner().tick(gateway, batch=10).moved == 1
