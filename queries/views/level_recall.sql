-- view:    level_recall
-- answers: how does recall fall from the source to the final context?
-- grain:   one row per run and level: source, text, chunks, index, each stage, candidates, final context, in order
-- kept:    in the store
-- column:  run          varchar  label of the service's configuration
-- column:  level_order  bigint   1-based, in order of the way
-- column:  level        varchar  source, text, chunks, index, the stage's name, candidates (all retrieve runs together) or final context
-- column:  kind         varchar  layer, the stage's kind, candidates or final context
-- column:  is_branch    boolean  a retrieve run, or a stage off the way to the final context: not one step of the way for all
-- column:  recall       double   mean share of needs surely there, best set; null when n is 0
-- column:  n            bigint   judged queries with that level on record
-- reads:   stage_recall, stage_coverage, query_recall, needed_evidence, label_states, setting_values
with

judged as materialized (

    select distinct
        query_recall.query_id,
        query_recall.run,
        query_recall.candidate_recall,
        query_recall.final_context_recall
    from query_recall
    where query_recall.is_judged

),

labels as materialized (

    select
        label_states.query_id,
        label_states.evidence_no,
        needed_evidence.set_no,
        needed_evidence.need
    from label_states
    inner join needed_evidence on label_states.evidence_no = needed_evidence.evidence_no
    where label_states.is_scored

),

layers as (

    select
        1 as layer,
        'source' as level
    union all
    select
        2 as layer,
        'text' as level
    union all
    select
        3 as layer,
        'chunks' as level
    union all
    select
        4 as layer,
        'index' as level

),

held as (

    select
        stage_coverage.query_id,
        stage_coverage.evidence_no,
        stage_coverage.kind,
        stage_coverage.coverage
    from stage_coverage
    where stage_coverage.side = 'layer'

),

spans as (

    select
        judged.query_id,
        judged.run,
        layers.layer,
        layers.level,
        labels.set_no,
        labels.need,
        coalesce(held.coverage, 0) >= setting_values.min_coverage - 1e-9 as is_there
    from judged
    inner join labels on judged.query_id = labels.query_id
    cross join layers
    cross join setting_values
    left join held
        on labels.query_id = held.query_id and labels.evidence_no = held.evidence_no and layers.level = held.kind

),

needs as (

    select
        spans.query_id,
        spans.run,
        spans.layer,
        spans.level,
        spans.set_no,
        spans.need,
        max(case when spans.is_there then 1 else 0 end) as is_there
    from spans
    group by spans.query_id, spans.run, spans.layer, spans.level, spans.set_no, spans.need

),

sets as (

    select
        needs.query_id,
        needs.run,
        needs.layer,
        needs.level,
        needs.set_no,
        avg(needs.is_there) as recall
    from needs
    group by needs.query_id, needs.run, needs.layer, needs.level, needs.set_no

),

best as (

    select
        sets.query_id,
        sets.run,
        sets.layer,
        sets.level,
        max(sets.recall) as recall
    from sets
    group by sets.query_id, sets.run, sets.layer, sets.level

),

-- A layer that holds nothing at all for a run was not recorded.
layer_levels as (

    select
        best.run,
        cast(best.layer as double) as place,
        best.level,
        'layer' as kind,
        false as is_branch,
        avg(best.recall) as recall,
        count(*) as n
    from best
    group by best.run, best.layer, best.level
    having max(best.recall) > 0

),

stage_levels as (

    select
        stage_recall.run,
        case when stage_recall.kind = 'retrieve' then 100.0 else 10000.0 end + stage_recall.stage_order as place,
        stage_recall.stage as level,
        stage_recall.kind,
        stage_recall.kind = 'retrieve' or not stage_recall.is_on_path as is_branch,
        stage_recall.recall_out as recall,
        stage_recall.n_judged as n
    from stage_recall
    where stage_recall.recall_out is not null

),

summaries as (

    select
        judged.run,
        1000.0 as place,
        'candidates' as level,
        'candidates' as kind,
        false as is_branch,
        avg(judged.candidate_recall) as recall,
        count(*) as n
    from judged
    group by judged.run

    union all

    select
        judged.run,
        1000000.0 as place,
        'final context' as level,
        'final context' as kind,
        false as is_branch,
        avg(judged.final_context_recall) as recall,
        count(*) as n
    from judged
    group by judged.run

),

levels as (

    select
        layer_levels.run,
        layer_levels.place,
        layer_levels.level,
        layer_levels.kind,
        layer_levels.is_branch,
        layer_levels.recall,
        layer_levels.n
    from layer_levels
    union all
    select
        stage_levels.run,
        stage_levels.place,
        stage_levels.level,
        stage_levels.kind,
        stage_levels.is_branch,
        stage_levels.recall,
        stage_levels.n
    from stage_levels
    union all
    select
        summaries.run,
        summaries.place,
        summaries.level,
        summaries.kind,
        summaries.is_branch,
        summaries.recall,
        summaries.n
    from summaries

)

select
    levels.run,
    row_number() over (partition by levels.run order by levels.place, levels.kind, levels.level) as level_order,
    levels.level,
    levels.kind,
    levels.is_branch,
    levels.recall,
    levels.n
from levels
