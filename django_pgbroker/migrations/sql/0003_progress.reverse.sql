-- Undo 0003_progress.sql.

drop table pgbroker.job_step;
drop table pgbroker.job_progress;

alter table pgbroker.archived_job
    drop column progress;

alter table pgbroker.job
    drop column is_tracked;
