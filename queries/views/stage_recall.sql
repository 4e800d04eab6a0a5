-- view:    stage_recall
-- answers: how much of the gold goes into each stage, how much comes out, and how much is lost on the way?
-- grain:   one row per run and stage (kind and name), in flow order by stage_order
-- kept:    in the store
-- column:  run           varchar  label of the service's configuration
-- column:  stage_order   bigint   1-based, in flow order
-- column:  kind          varchar  the stage's kind
-- column:  stage         varchar  the user's name for it
-- column:  is_on_path    boolean  on a recorded way to the final context in some query
-- column:  n_judged      bigint   judged queries in which it ran
-- column:  recall_in     double   mean share of needs in what it took, best set; null where it takes no recorded list
-- column:  recall_out    double   mean share of needs in what it put out, best set; null where it puts out none
-- column:  n_lost_in     bigint   spans lost in it for sure; each stage of an or counts
-- column:  n_lost_after  bigint   spans lost after it for sure; each stage of an or counts
-- column:  n_gained      bigint   spans whole in what it put out but not in what it took
-- reads:   stage_coverage, span_verdicts, query_recall, needed_evidence, label_states, places, stages, retrieve_runs, setting_values
with

judged as materialized (

    select distinct
        query_recall.query_id,
        query_recall.run
    from query_recall
    where query_recall.is_judged

),

ran as materialized (

    select
        judged.query_id,
        judged.run,
        stages.kind,
        coalesce(stages.name, stages.kind) as stage,
        max(case when places.side = 'in' then 1 else 0 end) as has_in,
        max(case when places.side = 'out' then 1 else 0 end) as has_out,
        max(case when places.is_on_path then 1 else 0 end) as is_on_path,
        max(places.step) as step
    from judged
    inner join places on judged.query_id = places.query_id
    inner join stages on places.stage_id = stages.stage_id
    group by judged.query_id, judged.run, stages.kind, coalesce(stages.name, stages.kind)

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

coverages as materialized (

    select
        stage_coverage.query_id,
        stage_coverage.evidence_no,
        stage_coverage.kind,
        stage_coverage.stage,
        max(case when stage_coverage.side = 'in' then stage_coverage.coverage else 0 end) as coverage_in,
        max(case when stage_coverage.side = 'out' then stage_coverage.coverage else 0 end) as coverage_out
    from stage_coverage
    where stage_coverage.side in ('in', 'out')
    group by stage_coverage.query_id, stage_coverage.evidence_no, stage_coverage.kind, stage_coverage.stage

),

spans as materialized (

    select
        ran.query_id,
        ran.run,
        ran.kind,
        ran.stage,
        ran.has_in,
        ran.has_out,
        labels.set_no,
        labels.need,
        coalesce(coverages.coverage_in, 0) >= setting_values.min_coverage - 1e-9 as is_in,
        coalesce(coverages.coverage_out, 0) >= setting_values.min_coverage - 1e-9 as is_out
    from ran
    inner join labels on ran.query_id = labels.query_id
    cross join setting_values
    left join coverages
        on
            ran.query_id = coverages.query_id
            and labels.evidence_no = coverages.evidence_no
            and ran.kind = coverages.kind
            and ran.stage = coverages.stage

),

needs as (

    select
        spans.query_id,
        spans.run,
        spans.kind,
        spans.stage,
        spans.has_in,
        spans.has_out,
        spans.set_no,
        spans.need,
        max(case when spans.is_in then 1 else 0 end) as is_in,
        max(case when spans.is_out then 1 else 0 end) as is_out
    from spans
    group by
        spans.query_id, spans.run, spans.kind, spans.stage, spans.has_in, spans.has_out, spans.set_no, spans.need

),

sets as (

    select
        needs.query_id,
        needs.run,
        needs.kind,
        needs.stage,
        needs.has_in,
        needs.has_out,
        needs.set_no,
        avg(needs.is_in) as recall_in,
        avg(needs.is_out) as recall_out
    from needs
    group by needs.query_id, needs.run, needs.kind, needs.stage, needs.has_in, needs.has_out, needs.set_no

),

queries_best as (

    select
        sets.query_id,
        sets.run,
        sets.kind,
        sets.stage,
        case when sets.has_in = 1 then max(sets.recall_in) end as recall_in,
        case when sets.has_out = 1 then max(sets.recall_out) end as recall_out
    from sets
    group by sets.query_id, sets.run, sets.kind, sets.stage, sets.has_in, sets.has_out

),

recalls as (

    select
        queries_best.run,
        queries_best.kind,
        queries_best.stage,
        count(*) as n_judged,
        avg(queries_best.recall_in) as recall_in,
        avg(queries_best.recall_out) as recall_out
    from queries_best
    group by queries_best.run, queries_best.kind, queries_best.stage

),

flow as (

    select
        ran.run,
        ran.kind,
        ran.stage,
        max(ran.is_on_path) as is_on_path,
        avg(ran.step) as step
    from ran
    group by ran.run, ran.kind, ran.stage

),

gains as (

    select
        spans.run,
        spans.kind,
        spans.stage,
        count(*) as n_gained
    from spans
    where spans.has_in = 1 and spans.is_out and not spans.is_in
    group by spans.run, spans.kind, spans.stage

),

fallen as materialized (

    select distinct
        span_verdicts.query_id,
        span_verdicts.evidence_no,
        span_verdicts.sure_order,
        span_verdicts.end_places
    from span_verdicts
    where span_verdicts.verdict = 'lost' and span_verdicts.lost_kind is not null and span_verdicts.sure_order >= 4

),

fallen_at as (

    select distinct
        judged.run,
        fallen.query_id,
        fallen.evidence_no,
        stages.kind,
        coalesce(stages.name, stages.kind) as stage,
        places.side
    from fallen
    inner join judged on fallen.query_id = judged.query_id
    inner join places on fallen.query_id = places.query_id
    inner join stages on places.stage_id = stages.stage_id
    where
        fallen.sure_order >= 10
        and list_contains(string_split(fallen.end_places, ' '), cast(places.place_no as varchar))

    union

    select
        judged.run,
        fallen.query_id,
        fallen.evidence_no,
        'retrieve' as kind,
        retrieve_runs.name as stage,
        'in' as side
    from fallen
    inner join judged on fallen.query_id = judged.query_id
    inner join retrieve_runs on fallen.query_id = retrieve_runs.query_id
    where fallen.sure_order = 4

),

falls as (

    select
        fallen_at.run,
        fallen_at.kind,
        fallen_at.stage,
        count(*) filter (where fallen_at.side = 'in') as n_lost_in,
        count(*) filter (where fallen_at.side = 'out') as n_lost_after
    from fallen_at
    group by fallen_at.run, fallen_at.kind, fallen_at.stage

)

select
    recalls.run,
    row_number() over (partition by recalls.run order by flow.step, recalls.kind, recalls.stage) as stage_order,
    recalls.kind,
    recalls.stage,
    flow.is_on_path = 1 as is_on_path,
    recalls.n_judged,
    recalls.recall_in,
    recalls.recall_out,
    coalesce(falls.n_lost_in, 0) as n_lost_in,
    coalesce(falls.n_lost_after, 0) as n_lost_after,
    coalesce(gains.n_gained, 0) as n_gained
from recalls
inner join flow
    on recalls.run is not distinct from flow.run and recalls.kind = flow.kind and recalls.stage = flow.stage
left join falls
    on recalls.run is not distinct from falls.run and recalls.kind = falls.kind and recalls.stage = falls.stage
left join gains
    on recalls.run is not distinct from gains.run and recalls.kind = gains.kind and recalls.stage = gains.stage
