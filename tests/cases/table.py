"""Which tests meet which public bug case, and which cases wait for a capability that is still to come.

A case is named by its number in the collection, a test by its file and function below ``tests/``. See test_table.py.
"""

from tests.cases.case import (
    BULK,
    DEPENDENCIES,
    LIMITS,
    MODES,
    OPERATOR,
    SCHEDULES,
    TENANCY,
    UNIQUENESS,
    Case,
)

_SCHEDULED = {f"B{number:03}": Case("cron, time zones, misfire", waits_for=SCHEDULES) for number in range(1, 37)}

_ODD_ARGUMENTS = (
    "cases/test_b066_values.py::"
    "test_b065_b067_b068_b069_an_argument_without_json_form_is_refused_before_any_sql_with_its_path"
)
_ODD_RESULTS = (
    "cases/test_b066_values.py::"
    "test_b066_b067_b068_b069_a_result_without_json_form_leaves_the_job_completed_and_says_why"
)

_TIME_OUTS = "worker/test_b063_time_outs.py::test_b063_after_a_hundred_time_outs_of_all_kinds_the_pool_has_its_size"
_LATE_FINISH = (
    "worker/test_cancel.py::"
    "test_b094_whatever_the_handler_comes_to_after_the_cancel_the_job_is_cancelled_and_not_tried_again"
)

CASES: dict[str, Case] = {
    **_SCHEDULED,
    "B037": Case(
        "SIGTERM while the claim commits",
        (
            "cases/test_b037_signal_in_commit.py::test_b037_what_was_committed_runs_or_goes_back_and_the_worker_ends_well",
            "cases/test_b037_signal_in_commit.py::"
            "test_b037_a_worker_that_goes_while_the_database_is_silent_leaves_the_job_to_its_lease",
            "store/test_doubt.py::test_a_commit_whose_answer_was_lost_is_found_and_its_claims_are_given_back",
        ),
    ),
    "B038": Case(
        "orphans behind a missing or reborn worker",
        (
            "scenarios/test_kill.py::test_the_jobs_of_killed_workers_complete_elsewhere_within_lease_and_sweep",
            "cases/test_b038_b040_leases.py::"
            "test_b038_a_job_comes_back_although_its_dead_worker_seems_to_live_under_the_same_name",
        ),
    ),
    "B039": Case(
        "rescue overwrites a job that has finished",
        (
            "store/test_races.py::test_a_job_that_is_completed_between_the_sweep_and_its_update_stays_completed",
            "store/test_races.py::test_a_job_that_is_completed_while_the_update_of_the_sweep_runs_stays_completed",
            "store/test_races.py::"
            "test_a_job_that_is_claimed_again_while_the_update_of_the_sweep_runs_belongs_to_the_second",
        ),
    ),
    "B040": Case(
        "heartbeats slower than the lease",
        (
            "cases/test_b038_b040_leases.py::test_b040_jobs_that_outlive_their_leases_several_times_run_once_each",
            "worker/test_leases.py::test_a_job_that_outlives_several_leases_runs_once",
        ),
    ),
    "B041": Case(
        "a claim returns more than its limit",
        (
            "store/test_claim.py::test_rivals_never_get_more_than_they_asked_nor_one_job_twice",
            "cases/test_b041_limits.py::test_b041_a_batch_is_never_larger_than_its_limit_and_takes_nothing_twice",
        ),
    ),
    "B042": Case(
        "connections cross a fork",
        ("cases/test_b042_fork.py::test_b042_a_hundred_jobs_that_fork_and_ask_the_database_all_complete",),
    ),
    "B043": Case(
        "an idle connection is dropped",
        (
            "scenarios/test_cut_connections.py::"
            "test_all_connections_are_cut_at_once_and_the_idle_worker_takes_the_next_job",
            "worker/test_hygiene.py::"
            "test_a_connection_that_was_killed_between_two_jobs_is_opened_again_before_the_second",
        ),
    ),
    "B044": Case(
        "an aborted transaction poisons the next job",
        (
            "worker/test_hygiene.py::test_a_transaction_left_open_is_rolled_back_fails_its_job_and_spares_the_next_one",
            "worker/test_hygiene.py::test_an_error_in_autocommit_that_the_handler_swallows_hurts_nobody",
            "worker/test_hygiene.py::test_an_error_within_a_transaction_is_recorded_as_itself_and_its_writes_are_gone",
            "worker/test_hygiene.py::test_no_backend_stays_idle_in_transaction_while_the_worker_lives_on",
        ),
    ),
    "B045": Case(
        "failure at the handler's commit",
        (
            "worker/test_hygiene.py::test_a_constraint_that_fails_at_the_commit_is_a_failure_of_the_job",
            "worker/test_hygiene.py::test_an_on_commit_hook_that_raises_is_a_failure_of_the_job_whose_writes_stay",
        ),
    ),
    "B046": Case(
        "the listener is cut for good",
        (
            "cases/test_b046_listener.py::"
            "test_b046_jobs_start_at_once_after_the_listener_was_cut_although_polls_are_half_a_minute_apart",
            "runtime/test_listener.py::"
            "test_a_connection_that_was_cut_comes_back_by_itself_with_a_look_at_what_was_missed",
        ),
    ),
    "B047": Case(
        "a job that kills its process is retried for ever",
        ("scenarios/test_kill.py::test_a_job_that_kills_its_process_runs_max_attempts_times_and_is_then_dead",),
    ),
    "B048": Case(
        "MemoryError blocks a slot",
        (
            "worker/test_retries.py::test_errors_that_are_hard_to_store_are_stored_and_the_worker_lives",
            "worker/test_executor.py::test_a_recursion_without_end_is_a_failure_and_the_slot_goes_on",
        ),
    ),
    "B049": Case(
        "sys.exit in a handler",
        (
            "cases/test_b049_exits.py::test_b049_whatever_ends_a_process_is_a_failure_with_its_type_and_its_retries",
            "worker/test_executor.py::test_whatever_is_raised_is_a_failure_with_its_class_and_text",
        ),
    ),
    "B050": Case(
        "a second copy after a lost connection",
        (
            "scenarios/test_cut_connections.py::"
            "test_each_of_its_connections_is_cut_in_turn_and_nothing_is_lost_or_done_twice",
            "scenarios/test_kill.py::test_the_verdict_of_a_zombie_is_refused_and_the_zombie_lives_on",
            "worker/test_leases.py::test_a_failure_of_a_lost_claim_burns_no_attempt_of_the_next_one",
        ),
        DEPENDENCIES,
    ),
    "B051": Case(
        "a database that is away ends the worker",
        (
            "scenarios/test_outage.py::test_workers_outlive_an_outage_answer_signals_in_it_and_then_take_the_next_job",
            "cases/test_b051_b060_away.py::"
            "test_b051_a_minute_without_a_server_costs_little_and_says_little_and_work_goes_on_within_ten_seconds",
        ),
    ),
    "B052": Case(
        "a handler that cannot be imported wedges the worker",
        (
            "cases/test_b052_unknown_handlers.py::"
            "test_b052_b084_such_jobs_stand_aside_with_a_reason_and_the_good_one_behind_them_runs",
            "maintenance/test_unknown_types.py::test_people_are_told_the_type_and_what_to_do",
        ),
    ),
    "B053": Case("bulk enqueue deadlocks on keys", waits_for=f"{UNIQUENESS}, {BULK}"),
    "B054": Case(
        "an old transaction starves the claim",
        (
            "cases/test_b054_old_snapshot.py::"
            "test_b054_a_claim_that_begins_where_the_last_one_ended_touches_no_more_than_the_first",
            "cases/test_b054_old_snapshot.py::test_b054_the_last_claims_cost_no_more_than_five_times_the_first",
            "plans/test_old_snapshot.py::test_claims_cost_no_more_than_three_times_as_much_beside_an_old_snapshot",
            "management/test_doctor.py::test_the_holder_of_an_old_snapshot_is_named_with_the_way_to_end_it",
        ),
    ),
    "B055": Case("a transaction pooler", ("pooler/test_workers.py::test_b055_200_jobs_run_once_and_leave_no_trace",)),
    "B056": Case(
        "32-bit identities",
        (
            "cases/test_b056_wide_ids.py::test_b056_workers_that_complete_fail_and_die_and_the_pages_about_it",
            "store/test_wide_ids.py::test_every_id_key_and_token_column_is_a_bigint_and_every_sequence_too",
            "store/test_wide_ids.py::test_a_job_lives_its_whole_life_beyond_32_bits",
        ),
        OPERATOR,
    ),
    "B057": Case(
        "the broker closes the caller's connection",
        (
            "operations/test_transactions.py::"
            "test_an_enqueue_on_another_alias_leaves_the_callers_connection_and_transaction_alone",
            "operations/test_transactions.py::test_another_alias_has_a_transaction_of_its_own",
            "worker/test_session.py::test_a_worker_that_runs_within_a_transaction_of_its_caller_leaves_that_one_alone",
        ),
        SCHEDULES,
    ),
    "B058": Case(
        "a handler disappears between enqueue and run",
        (
            "cases/test_b052_unknown_handlers.py::test_b058_a_job_of_a_newer_release_waits_for_a_worker_that_knows_it",
            "worker/test_retries.py::test_a_changed_signature_fails_clearly_and_burns_no_other_job",
        ),
        OPERATOR,
    ),
    "B059": Case("a recycled worker runs its last job twice", ("worker/test_recycling.py::test_b059_each_job_once",)),
    "B060": Case(
        "an error of the listener makes a busy loop",
        (
            "scenarios/test_cut_connections.py::"
            "test_where_nobody_can_listen_polling_goes_on_without_a_busy_loop_until_it_can_again",
            "cases/test_b051_b060_away.py::test_b060_a_minute_without_a_listener_is_a_minute_of_calm_polling",
        ),
    ),
    "B061": Case("a dead worker's job keeps its slot", waits_for=LIMITS),
    "B062": Case(
        "the heartbeat ends while the handler goes on",
        (
            "worker/test_leases.py::test_a_renewal_whose_connection_was_cut_is_tried_again_and_the_job_runs_once",
            "worker/test_renewals.py::test_after_three_failed_renewals_handlers_are_told_while_their_lease_holds_"
            "and_the_worker_ends",
            "worker/test_leases.py::test_a_lost_lease_is_told_to_the_handler_whose_verdict_then_changes_nothing",
            "worker/test_leases.py::"
            "test_a_verdict_that_comes_while_another_worker_runs_the_job_leaves_that_claim_alone",
            "cases/test_b064_half_open.py::"
            "test_b064_b062_a_worker_whose_heartbeat_falls_silent_keeps_its_leases_on_a_new_connection",
        ),
    ),
    "B063": Case("time-outs eat the threads", (_TIME_OUTS,)),
    "B064": Case(
        "a half-open listener",
        (
            "cases/test_b064_half_open.py::"
            "test_b064_a_listener_that_hears_nothing_any_more_is_found_out_and_listens_anew",
            "cases/test_b064_half_open.py::test_b064_no_statement_of_the_broker_waits_for_a_silent_server_for_ever",
            "cases/test_b064_half_open.py::"
            "test_b064_with_the_time_outs_as_they_are_one_job_waits_for_the_detection_and_no_other",
        ),
    ),
    "B065": Case(
        "NUL in arguments",
        (
            _ODD_ARGUMENTS,
            "operations/test_transactions.py::test_a_refused_argument_leaves_the_transaction_usable",
            "operations/test_enqueue.py::test_what_cannot_work_is_refused_before_any_sql",
        ),
        UNIQUENESS,
    ),
    "B066": Case(
        "NUL in a result or an error",
        (
            _ODD_RESULTS,
            "cases/test_b066_values.py::test_b066_nul_in_an_error_is_stored_in_a_form_that_can_be_read",
            "worker/test_doubt.py::test_one_verdict_that_cannot_be_stored_is_recorded_bare_and_its_neighbours_whole",
        ),
        "progress of jobs",
    ),
    "B067": Case("NaN and Infinity", (_ODD_ARGUMENTS, _ODD_RESULTS), "progress of jobs"),
    "B068": Case("keys that are no text", (_ODD_ARGUMENTS, _ODD_RESULTS), MODES),
    "B069": Case(
        "datetime, UUID, Decimal",
        (
            _ODD_ARGUMENTS,
            _ODD_RESULTS,
            "domain/test_payload.py::test_what_the_page_says_is_refused_is_refused_with_its_path_and_a_hint",
        ),
        BULK,
    ),
    "B070": Case(
        "a wait too long for a date",
        (
            "cases/test_b070_b071_times.py::"
            "test_b070_after_many_retries_the_wait_is_the_longest_one_and_the_job_is_still_there",
            "domain/test_backoff.py::test_a_large_attempt_waits_for_the_cap_and_no_longer",
            "domain/test_verdicts.py::test_a_delay_that_no_date_can_take_is_bounded",
        ),
        OPERATOR,
    ),
    "B071": Case(
        "naive and foreign times",
        (
            "cases/test_b070_b071_times.py::test_b071_one_instant_is_one_run_time_in_whatever_zone_it_is_given",
            "cases/test_b070_b071_times.py::test_b071_a_time_without_a_zone_is_refused_rather_than_guessed",
        ),
    ),
    "B072": Case(
        "a server of another language",
        (
            "cases/test_b072_other_languages.py::"
            "test_b072_an_enqueue_that_fails_is_the_same_error_in_every_language_and_keeps_its_text",
            "cases/test_b072_other_languages.py::test_b072_a_worker_whose_turns_fail_in_another_language_tries_again",
            "cases/test_b072_other_languages.py::test_b072_nothing_is_decided_by_the_text_of_an_error",
        ),
        UNIQUENESS,
    ),
    "B073": Case(
        "a parent finishes while its child is enqueued",
        (
            "store/test_races.py::"
            "test_an_edge_that_is_committed_while_the_acknowledge_runs_is_seen_by_the_second_statement",
        ),
        DEPENDENCIES,
    ),
    "B074": Case("a child of a dead parent waits for ever", waits_for=DEPENDENCIES),
    "B075": Case("an empty group", waits_for=DEPENDENCIES),
    "B076": Case("a callback before a retried member is done", waits_for=DEPENDENCIES),
    "B077": Case("redrive inside a finished group", waits_for=f"{DEPENDENCIES}, {OPERATOR}"),
    "B078": Case("a dead job keeps its unique key", waits_for=UNIQUENESS),
    "B079": Case("a retry collides with its sibling", waits_for=UNIQUENESS),
    "B080": Case("a duplicate resets a running job", waits_for=UNIQUENESS),
    "B081": Case(
        "scripts in arguments",
        (
            "admin/test_escaping.py::test_hostile_text_adds_no_element_no_attribute_and_no_link",
            "admin/test_argument_pages.py::test_hostile_arguments_stay_text_in_the_fields",
            "browser/test_verbs.py::test_text_that_looks_like_code_stays_text",
        ),
    ),
    "B082": Case(
        "who may only view acts",
        (
            "admin/test_permissions.py::test_the_view_permission_of_a_model_opens_its_list_and_its_details",
            "admin/test_permissions.py::test_holders_of_every_permission_of_a_model_still_change_nothing",
            "admin/test_verb_permissions.py::test_staff_with_all_permissions_but_the_verbs_may_not",
            "admin/test_verb_permissions.py::test_an_action_of_view_only_staff_changes_nothing",
        ),
        TENANCY,
    ),
    "B083": Case(
        "quotes in names",
        (
            "cases/test_b083_names.py::test_b083_a_queue_or_job_type_of_such_a_name_is_refused_everywhere",
            "cases/test_b083_names.py::test_b083_a_tenant_of_such_a_name_reaches_its_handler_and_no_other",
            "cases/test_b083_names.py::"
            "test_b083_a_queue_that_somebody_named_so_by_hand_is_served_paused_and_announced_like_any_other",
            "cases/test_b083_names.py::"
            "test_b083_a_notification_for_a_queue_of_another_name_wakes_nobody_and_harms_nobody",
        ),
    ),
    "B084": Case(
        "stored bytes run code",
        (
            "cases/test_b052_unknown_handlers.py::"
            "test_b052_b084_such_jobs_stand_aside_with_a_reason_and_the_good_one_behind_them_runs",
            "cases/test_b052_unknown_handlers.py::test_b084_nothing_in_the_package_makes_code_of_text",
            "test_registry.py::test_a_dotted_path_that_nobody_registered_is_never_imported",
        ),
    ),
    "B085": Case(
        "lists of the admin count everything",
        (
            "cases/test_b085_admin_at_size.py::test_b085_a_list_and_its_second_page_touch_a_page_of_rows",
            "cases/test_b085_admin_at_size.py::test_b085_the_page_of_a_job_and_the_search_for_it_touch_its_own_rows",
            "cases/test_b085_admin_at_size.py::test_b085_a_filter_touches_a_bounded_number_of_rows_whatever_it_finds",
            "admin/test_paging.py::test_a_list_of_500_costs_as_many_queries_as_one_of_5_and_counts_nothing",
        ),
    ),
    "B086": Case(
        "a paused queue leaks jobs",
        (
            "cases/test_b086_pause.py::"
            "test_b086_workers_that_come_and_go_run_nothing_of_a_paused_queue_until_it_is_resumed",
            "cases/test_b086_pause.py::test_b086_no_claim_begins_after_the_pause_was_committed_and_what_runs_finishes",
            "cases/test_b086_pause.py::test_b086_a_retry_waits_too",
            "store/test_claim.py::test_a_pause_reaches_prepared_claims_as_soon_as_it_is_committed",
        ),
    ),
    "B087": Case("a tenant survives on a pooled connection", waits_for=f"{TENANCY}, PgBouncer"),
    "B088": Case(
        "raw fields are edited in the admin",
        (
            "admin/test_permissions.py::test_a_superuser_changes_nothing_either",
            "admin/test_verb_pages.py::test_raw_columns_sent_along_are_ignored",
            "admin/test_verb_pages.py::test_a_verb_that_the_state_does_not_allow_is_refused_in_words",
            "admin/test_verb_pages.py::test_a_job_tells_on_its_page_who_did_what_to_it",
        ),
        TENANCY,
    ),
    "B089": Case("one tenant blocks all others", waits_for="fair queues"),
    "B090": Case(
        "retries march in step",
        ("domain/test_backoff.py::test_full_jitter_draws_from_zero_to_the_bound",),
        "delays that a server asks for, with jitter above them",
    ),
    "B091": Case("an outbox skips a slow transaction", waits_for="the outbox"),
    "B092": Case(
        "partitions run out",
        (
            "cases/test_b092_partitions.py::"
            "test_b092_jobs_finish_without_a_partition_of_their_time_and_are_moved_into_one_when_it_is_made",
            "management/test_doctor.py::test_partitions_that_run_out_are_a_warning_and_then_an_alarm",
            "maintenance/test_retention.py::test_partitions_past_the_limit_go_with_their_rows_and_younger_ones_stay",
        ),
    ),
    "B093": Case(
        "a job starts before its row is committed",
        (
            "worker/test_claiming.py::"
            "test_a_job_is_not_started_before_the_commit_and_sees_the_rows_that_were_written_with_it",
            "operations/test_transactions.py::test_a_rollback_leaves_no_job",
            "operations/test_transactions.py::test_a_savepoint_takes_only_its_own_jobs_back",
            "runtime/test_announcer.py::test_a_rollback_announces_nothing",
            "runtime/test_announcer.py::test_a_savepoint_that_is_rolled_back_announces_nothing",
        ),
    ),
    "B094": Case("a late finish overwrites a cancel", (_LATE_FINISH,)),
}
