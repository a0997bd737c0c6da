"""What the command refuses before it makes a database."""

import pytest
from django.core.management import CommandError, call_command


def refuse(*arguments):
    with pytest.raises(CommandError) as refusal:
        call_command("pgbroker_bench", *arguments)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "required: measurement"),
        (("speed",), "invalid choice: 'speed'"),
        (("drain", "--jobs", "99"), "argument --jobs: must be from 100 to 10,000,000, not 99"),
        (("drain", "--jobs", "many"), "argument --jobs: must be a whole number, not 'many'"),
        (("drain", "--runs", "0"), "argument --runs: must be from 1 to 100, not 0"),
        (("drain", "--processes", "51"), "argument --processes: must be from 1 to 50, not 51"),
        (("drain", "--handler", "slow"), "invalid choice: 'slow'"),
        (("drain", "--explain", "--processes", "2"), "--explain prints the SQL of the floor"),
        (("drain", "--explain", "--handler", "orm"), "--explain prints the SQL of the floor"),
        (("churn", "--seconds", "nan"), "argument --seconds: must be from 4 to 86,400, not nan"),
        (("churn", "--seconds", "10", "--old-snapshot-seconds", "6"), "may be half of --seconds at most"),
        (("latency", "--runs", "3"), "unrecognized arguments: --runs 3"),
        (("idle", "--jobs", "100"), "unrecognized arguments: --jobs 100"),
        (("idle", "--database", "nowhere"), "there is no database 'nowhere'; choose one of default"),
    ],
)
def test_it_refuses_what_makes_no_sense(arguments, message):
    assert message in refuse(*arguments)


@pytest.mark.parametrize("measurement", ["enqueue", "drain", "latency", "backlog", "churn", "idle"])
def test_help_of_each_measurement_shows_an_example(measurement, capsys):
    with pytest.raises(SystemExit):
        call_command("pgbroker_bench", measurement, "--help")
    assert f"Example: manage.py pgbroker_bench {measurement} --" in " ".join(capsys.readouterr().out.split())
