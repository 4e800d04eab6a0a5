-- view:    probe_runs
-- answers: which retrieve runs were asked again, how, and does the answer still count?
-- grain:   one row per probe run that asked a recorded retrieve run again
-- kept:    during a refresh
-- column:  stage_id         bigint   the probe's own stage run
-- column:  probed_stage_id  bigint   the retrieve run that was asked again
-- column:  query_id         bigint   queries.query_id
-- column:  probe            varchar  stages.probe: again, exact, deeper, unfiltered, original_question, by_id
-- column:  is_exact         boolean  every chunk was looked at: no approximate search
-- column:  depth            integer  how many were asked for
-- column:  void             varchar  null: it counts; else why not: failed, unreadable, index_version (another one), written_since, answers_differ (the same search now answers otherwise), unknown_version
-- reads:   stages, lists, candidates, items, recorded_indexes
with

probes as materialized (

    select
        stages.stage_id,
        stages.probed_stage_id,
        stages.query_id,
        stages.probe,
        stages.mode,
        coalesce(stages.status, 'ok') as status,
        stages.k as depth,
        stages.index_version,
        stages.process_id,
        stages.started_at_ns + coalesce(stages.duration_ns, 0) as ended_at_ns
    from stages
    where stages.probe is not null and stages.probed_stage_id is not null

),

only_index as (

    select min(recorded_indexes.only_index_name) as index_name
    from recorded_indexes

),

recorded as materialized (

    select
        stages.stage_id,
        coalesce(stages.index_name, only_index.index_name, '') as index_name,
        stages.index_version,
        stages.started_at_ns
    from stages
    cross join only_index
    where stages.stage_id in (select probes.probed_stage_id from probes)

),

-- A write that failed may have changed something too.
writes as (

    select
        coalesce(stages.index_name, only_index.index_name, '') as index_name,
        stages.started_at_ns + coalesce(stages.duration_ns, 0) as at_ns
    from stages
    cross join only_index
    where stages.kind = 'index'

),

written_since as (

    select distinct probes.stage_id
    from probes
    inner join recorded on probes.probed_stage_id = recorded.stage_id
    inner join writes
        on
            recorded.index_name = writes.index_name
            and writes.at_ns > recorded.started_at_ns
            and writes.at_ns <= probes.ended_at_ns

),

outputs as materialized (

    select
        lists.stage_id,
        lists.list_id,
        coalesce(lists.same_as_list_id, lists.list_id) as rows_list_id,
        coalesce(lists.is_complete, true) as is_complete
    from lists
    where
        lists.role = 'out'
        and (
            lists.stage_id in (select probes.stage_id from probes)
            or lists.stage_id in (select probes.probed_stage_id from probes)
        )

),

output_states as (

    select
        outputs.stage_id,
        bool_and(outputs.is_complete) as is_complete
    from outputs
    group by outputs.stage_id

),

-- ------------------------------------------------------------------ the same question, asked unchanged
compared_stages as (

    select probes.stage_id
    from probes
    where probes.probe = 'again'
    union
    select probes.probed_stage_id as stage_id
    from probes
    where probes.probe = 'again'

),

answers as materialized (

    select distinct
        outputs.stage_id,
        coalesce(items.chunk_id, items.item_text_hash, cast(items.item as varchar)) as name
    from outputs
    inner join compared_stages on outputs.stage_id = compared_stages.stage_id
    inner join candidates on outputs.rows_list_id = candidates.list_id
    inner join items on candidates.item = items.item
    where candidates.is_kept is distinct from false

),

answer_sizes as (

    select
        answers.stage_id,
        count(*) as n
    from answers
    group by answers.stage_id

),

agreements as (

    select
        probes.stage_id,
        count(*) as n
    from probes
    inner join answers as now_named on probes.stage_id = now_named.stage_id
    inner join answers as then_named
        on probes.probed_stage_id = then_named.stage_id and now_named.name = then_named.name
    where probes.probe = 'again'
    group by probes.stage_id

),

controls as (

    select
        probes.probed_stage_id,
        probes.process_id,
        min(case
            when
                coalesce(now_size.n, 0) = coalesce(agreements.n, 0)
                and coalesce(then_size.n, 0) = coalesce(agreements.n, 0)
                and coalesce(now_state.is_complete, false)
                and coalesce(then_state.is_complete, false)
                then 1
            else 0
        end) as is_equal
    from probes
    left join answer_sizes as now_size on probes.stage_id = now_size.stage_id
    left join answer_sizes as then_size on probes.probed_stage_id = then_size.stage_id
    left join agreements on probes.stage_id = agreements.stage_id
    left join output_states as now_state on probes.stage_id = now_state.stage_id
    left join output_states as then_state on probes.probed_stage_id = then_state.stage_id
    where probes.probe = 'again' and probes.status = 'ok'
    group by probes.probed_stage_id, probes.process_id

)

select
    probes.stage_id,
    probes.probed_stage_id,
    probes.query_id,
    probes.probe,
    probes.probe = 'by_id' or coalesce(probes.mode in ('exact', 'lexical', 'sql'), false) as is_exact,
    probes.depth,
    case
        when probes.status <> 'ok' then 'failed'
        when not coalesce(output_states.is_complete, false) then 'unreadable'
        when recorded.index_version is not null and probes.index_version is not null
            then case when recorded.index_version <> probes.index_version then 'index_version' end
        when written_since.stage_id is not null then 'written_since'
        when controls.is_equal = 0 then 'answers_differ'
        when controls.is_equal is null then 'unknown_version'
    end as void
from probes
inner join recorded on probes.probed_stage_id = recorded.stage_id
left join output_states on probes.stage_id = output_states.stage_id
left join written_since on probes.stage_id = written_since.stage_id
left join controls on probes.probed_stage_id = controls.probed_stage_id and probes.process_id = controls.process_id
