-- report:  incomplete
-- answers: what of the service's work is not in the store, so that a loss may be none?
-- grain:   one row per kind of gap and detail
-- param:   run         varchar = null  a run's label, for gaps that belong to queries or their processes; null = every run
-- column:  gap         varchar  dropped, set_aside, damaged_log, unread_log, missing_log, not_whole, interrupted,
--                               orphan_stages, detached_stages, capture_error, void_probe
-- column:  detail      varchar  reason, log or database file, stage name, or why probes are void
-- column:  n           bigint   records, bytes, queries or stage runs concerned
-- column:  unit        varchar  what n counts: value, byte, query, candidate, document, label, file, stage run or
--                               probe
-- column:  is_serious  boolean  true: rows are missing or damaged, and recall may be lower than it was
-- reads:   losses, ledger, queries, query_scope, stage_gaps, evidence,
--          probe_runs
with

dropped as (

    select
        'dropped' as gap,
        losses.reason as detail,
        sum(losses.n) as n,
        'value' as unit,
        true as is_serious
    from losses
    where losses.reason not like 'set_aside_%'
    group by losses.reason

),

-- Rows the store held and no log brought back; labels can be loaded again, and then nothing of them is missing.
set_aside as (

    select
        'set_aside' as gap,
        losses.detail,
        losses.n,
        case losses.reason
            when 'set_aside_queries' then 'query'
            when 'set_aside_candidates' then 'candidate'
            when 'set_aside_documents' then 'document'
            when 'set_aside_labels' then 'label'
            else 'file'
        end as unit,
        true as is_serious
    from losses
    where
        losses.reason like 'set_aside_%'
        and (losses.reason <> 'set_aside_labels' or not exists (select 1 from evidence))

),

damaged_logs as (

    select
        case ledger.status when 'unreadable' then 'unread_log' when 'missing' then 'missing_log' else 'damaged_log' end
            as gap,
        ledger.log as detail,
        case when ledger.status in ('unreadable', 'missing') then 1 else ledger.n_damaged_bytes end as n,
        case when ledger.status in ('unreadable', 'missing') then 'file' else 'byte' end as unit,
        true as is_serious
    from ledger
    where ledger.n_damaged_bytes > 0 or ledger.status in ('damaged', 'unreadable', 'missing')

),

-- What an interrupted query lacks was never recorded.
parted_queries as (

    select
        'not_whole' as gap,
        query_scope.run as detail,
        count(*) as n,
        'query' as unit,
        true as is_serious
    from query_scope
    where
        not query_scope.is_whole
        and query_scope.scope <> 'interrupted'
        and (cast($run as varchar) is null or query_scope.run = cast($run as varchar))
    group by query_scope.run

),

interrupted_queries as (

    select
        'interrupted' as gap,
        queries.run as detail,
        count(*) as n,
        'query' as unit,
        false as is_serious
    from queries
    where queries.status = 'interrupted' and (cast($run as varchar) is null or queries.run = cast($run as varchar))
    group by queries.run

),

of_stages as (

    select
        stage_gaps.gap,
        stage_gaps.detail,
        sum(stage_gaps.n) as n,
        'stage run' as unit,
        stage_gaps.is_serious
    from stage_gaps
    where cast($run as varchar) is null or stage_gaps.is_any_run or stage_gaps.run = cast($run as varchar)
    group by stage_gaps.gap, stage_gaps.detail, stage_gaps.is_serious

),

void_probes as (

    select
        'void_probe' as gap,
        probe_runs.void as detail,
        count(*) as n,
        'probe' as unit,
        false as is_serious
    from probe_runs
    left join queries on probe_runs.query_id = queries.query_id
    where probe_runs.void is not null and (cast($run as varchar) is null or queries.run = cast($run as varchar))
    group by probe_runs.void

),

all_gaps as (

    select
        dropped.gap,
        dropped.detail,
        dropped.n,
        dropped.unit,
        dropped.is_serious
    from dropped
    union all
    select
        set_aside.gap,
        set_aside.detail,
        set_aside.n,
        set_aside.unit,
        set_aside.is_serious
    from set_aside
    union all
    select
        damaged_logs.gap,
        damaged_logs.detail,
        damaged_logs.n,
        damaged_logs.unit,
        damaged_logs.is_serious
    from damaged_logs
    union all
    select
        parted_queries.gap,
        parted_queries.detail,
        parted_queries.n,
        parted_queries.unit,
        parted_queries.is_serious
    from parted_queries
    union all
    select
        interrupted_queries.gap,
        interrupted_queries.detail,
        interrupted_queries.n,
        interrupted_queries.unit,
        interrupted_queries.is_serious
    from interrupted_queries
    union all
    select
        of_stages.gap,
        of_stages.detail,
        of_stages.n,
        of_stages.unit,
        of_stages.is_serious
    from of_stages
    union all
    select
        void_probes.gap,
        void_probes.detail,
        void_probes.n,
        void_probes.unit,
        void_probes.is_serious
    from void_probes

)

select
    all_gaps.gap as gap,
    all_gaps.detail as detail,
    cast(all_gaps.n as bigint) as n,
    all_gaps.unit as unit,
    all_gaps.is_serious as is_serious
from all_gaps
order by all_gaps.is_serious desc, all_gaps.gap asc, all_gaps.n desc, all_gaps.detail asc
