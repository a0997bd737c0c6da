"""The history has partitions ahead."""

from django_pgbroker.maintenance.partitioner import Partitioner
from django_pgbroker.store.partitions import list_partitions


def test_a_missing_partition_is_made_again(gateway, rows):
    Partitioner().tick(gateway, batch=10)
    newest = max(
        (each for each in list_partitions(gateway) if each.parent == "execution" and not each.is_default),
        key=lambda each: each.upper,
    )
    rows.run(f'drop table pgbroker."{newest.name}"')

    swept = Partitioner().tick(gateway, batch=10)

    assert swept.moved == 1
    assert newest.name in {each.name for each in list_partitions(gateway)}
    assert Partitioner().tick(gateway, batch=10).moved == 0
