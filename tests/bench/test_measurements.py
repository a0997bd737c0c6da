"""Each measurement for real. The figures mean nothing at this size; how they hang together does."""

import pytest

from tests.bench.processes import run_bench

pytestmark = pytest.mark.django_db


def check_conditions(report, measurement):
    assert report["measurement"] == measurement
    assert int(report["server_version"].split(".")[0]) >= 15
    assert report["cpus"] >= 1


def is_quotient(report, numerator, denominator):
    return report["ratio"] == pytest.approx(report[numerator] / report[denominator], rel=0.02)


def test_drain_of_nothing_beside_the_bare_statements():
    report = run_bench("drain", "--jobs", "600", "--runs", "1", "--concurrency", "3")
    check_conditions(report, "drain")
    assert (report["jobs"], report["concurrency"], report["handler"]) == (600, 3, "noop")
    assert is_quotient(report, "jobs_per_second", "floor_jobs_per_second")
    [run] = report["runs"]
    assert run["rss_mb"] == report["rss_mb"]
    assert 20 < run["rss_before_mb"] < 1_000
    assert 100 < report["wal_bytes_per_job"] < 100_000
    assert 20 < report["rss_mb"] < 1_000


def test_drain_of_orm_jobs_beside_plain_threads():
    report = run_bench("drain", "--jobs", "150", "--runs", "1", "--handler", "orm")
    check_conditions(report, "drain")
    assert report["handler"] == "orm"
    assert is_quotient(report, "jobs_per_second", "floor_jobs_per_second")


def test_drain_by_several_processes_beside_one():
    report = run_bench("drain", "--jobs", "500", "--runs", "1", "--processes", "2", "--concurrency", "1")
    check_conditions(report, "drain")
    assert (report["processes"], report["concurrency"]) == (2, 1)
    assert is_quotient(report, "jobs_per_second", "one_process_jobs_per_second")
    assert "floor_jobs_per_second" not in report


def test_enqueue_one_by_one_with_a_rest_of_a_transaction():
    report = run_bench("enqueue", "--jobs", "150", "--runs", "3")
    check_conditions(report, "enqueue")
    for run in report["runs"]:
        assert run["ratio"] == pytest.approx(run["jobs_per_second"] / run["floor_jobs_per_second"], rel=0.02)
    assert report["ratio"] == sorted(run["ratio"] for run in report["runs"])[1], "the median of the pairs"


@pytest.mark.parametrize("arguments", [(), ("--no-listen",)])
def test_latency_of_an_idle_worker(arguments):
    report = run_bench("latency", "--jobs", "8", "--gap-seconds", "0.02", *arguments)
    check_conditions(report, "latency")
    assert report["listens"] is not bool(arguments)
    assert 0 < report["p50_ms"] <= report["p99_ms"] <= report["max_ms"]
    assert 0 < report["claim_p50_ms"] <= report["claim_p99_ms"]


def test_backlog_large_beside_small():
    report = run_bench("backlog", "--pending", "2000", "--small-pending", "200", "--claims", "5")
    check_conditions(report, "backlog")
    assert (report["pending"], report["small_pending"], report["claims"], report["batch"]) == (2000, 200, 5, 100)
    assert 0 < report["p50_ms"] <= report["p99_ms"]
    assert 0 < report["small_p50_ms"] <= report["small_p99_ms"]
    assert is_quotient(report, "p99_ms", "small_p99_ms")


def test_churn_with_an_old_snapshot_in_the_middle():
    report = run_bench("churn", "--seconds", "12", "--old-snapshot-seconds", "4")
    check_conditions(report, "churn")
    assert report["jobs"] > 0
    assert 0 < report["p50_ms"] <= report["p99_ms"]
    assert 0 < report["probe_p50_ms"] <= report["probe_p99_ms"]
    before, beside = report["snapshot_before_p99_ms"], report["snapshot_p99_ms"]
    assert report["snapshot_ratio"] == pytest.approx(beside / before, rel=0.02)
    sizes = [
        sum(size for name, size in report[when].items() if not name.startswith("job_payload"))
        for when in ("sizes_after_first_minute", "sizes_at_end")
    ]
    assert report["growth_ratio"] == pytest.approx(sizes[1] / sizes[0], rel=0.01)
    [sample] = report["samples"]
    assert {"seconds", "jobs", "jobs_per_second", "p50_ms", "p99_ms", "dead_rows", "job_claim_bytes"} <= set(sample)


def test_churn_without_a_snapshot_has_no_figures_of_one():
    report = run_bench("churn", "--seconds", "4")
    assert [report[key] for key in report if key.startswith("snapshot_")] == [None] * 4


def test_an_idle_worker():
    report = run_bench("idle", "--seconds", "5")
    check_conditions(report, "idle")
    assert 20 < report["rss_mb"] < 1_000
    assert 0 <= report["cpu_percent"] < 50
    assert 0 < report["transactions_per_second"] < 100
