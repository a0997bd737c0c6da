-- purpose: count the live jobs that match a filter, among a bounded number of rows
-- params:  most bigint (matches), rows bigint (looked at), states smallint[], tried boolean, queue, job_type,
--          tenant text, created_after, created_before timestamptz (null: any)
-- returns: how many match, at most one more than most; whether all rows were looked at
-- moves:
-- locks:   none
-- index:
-- Nothing is sorted or put aside: rows stream through both limits, whatever they carry.
select
    (
        select count(*)
        from (
            select 1
            from (
                select * from pgbroker.job
                limit %(rows)s::bigint
            ) as looked_at
            where state = any (%(states)s::smallint[])
              and (%(queue)s::text is null or queue_id = (select id from pgbroker.queue where name = %(queue)s::text))
              and (
                  %(job_type)s::text is null
                  or job_type_id = (select id from pgbroker.job_type where name = %(job_type)s::text)
              )
              and (%(tenant)s::text is null or tenant_id = (select id from pgbroker.tenant where name = %(tenant)s::text))
              and (%(tried)s::boolean is null or (attempt > 0) = %(tried)s::boolean)
              and (%(created_after)s::timestamptz is null or created_at >= %(created_after)s::timestamptz)
              and (%(created_before)s::timestamptz is null or created_at < %(created_before)s::timestamptz)
            limit %(most)s::bigint + 1
        ) as matching
    ),
    (
        select count(*)
        from (
            select 1 from pgbroker.job
            limit %(rows)s::bigint
        ) as all_of_them
    ) < %(rows)s::bigint
