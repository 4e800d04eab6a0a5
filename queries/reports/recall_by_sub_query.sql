-- report:  recall_by_sub_query
-- answers: what does each sub-query find?
-- grain:   one row per run and sub-query label
-- param:   run             varchar = null  a run's label; null = every run
-- column:  run             varchar  label of the service's configuration
-- column:  sub_query       varchar  as labelled with retrieve(sub_query=); null = retrieve runs without a label
-- column:  n_queries       bigint   scored queries in which it ran
-- column:  recall_alone    double   mean share of needs found by its retrieve runs alone, best set
-- column:  recall_all      double   the same for all retrieve runs of these queries
-- column:  n_spans         bigint   gold spans of these queries
-- column:  n_found         bigint   of these it found whole
-- column:  n_only_here     bigint   of these that no other sub-query of the query found whole
-- column:  n_maybe         bigint   of these not surely found by it, that lists not recorded in full may hold
-- reads:   retrieve_runs, stages, query_scope, label_states, needed_evidence, piece_sightings, places, setting_values
with

runs as (

    select
        query_scope.run,
        retrieve_runs.query_id,
        retrieve_runs.stage_id,
        coalesce(stages.sub_query, '') as sub_query
    from retrieve_runs
    inner join stages on retrieve_runs.stage_id = stages.stage_id
    inner join query_scope on retrieve_runs.query_id = query_scope.query_id
    where
        query_scope.scope = 'scored'
        and (cast($run as varchar) is null or query_scope.run = cast($run as varchar))

),

groups as (

    select distinct
        runs.run,
        runs.query_id,
        runs.sub_query
    from runs

),

labels as (

    select
        label_states.query_id,
        label_states.evidence_no
    from label_states
    where label_states.is_scored

),

pieces as (

    select
        runs.query_id,
        runs.sub_query,
        piece_sightings.evidence_no,
        piece_sightings.piece,
        max(piece_sightings.weight) as weight,
        max(piece_sightings.total) as total,
        bool_or(piece_sightings.is_sure and piece_sightings.is_own) as is_sure
    from runs
    inner join places on runs.query_id = places.query_id and runs.stage_id = places.stage_id and places.side = 'out'
    inner join piece_sightings
        on places.query_id = piece_sightings.query_id and places.place_no = piece_sightings.place_no
    group by runs.query_id, runs.sub_query, piece_sightings.evidence_no, piece_sightings.piece

),

alone as (

    select
        pieces.query_id,
        pieces.sub_query,
        pieces.evidence_no,
        sum(pieces.weight) filter (where pieces.is_sure) / nullif(max(pieces.total), 0) as coverage,
        sum(pieces.weight) / nullif(max(pieces.total), 0) as coverage_possible
    from pieces
    group by pieces.query_id, pieces.sub_query, pieces.evidence_no

),

all_pieces as (

    select
        pieces.query_id,
        pieces.evidence_no,
        pieces.piece,
        max(pieces.weight) as weight,
        max(pieces.total) as total
    from pieces
    where pieces.is_sure
    group by pieces.query_id, pieces.evidence_no, pieces.piece

),

together as (

    select
        all_pieces.query_id,
        all_pieces.evidence_no,
        sum(all_pieces.weight) / nullif(max(all_pieces.total), 0) as coverage
    from all_pieces
    group by all_pieces.query_id, all_pieces.evidence_no

),

spans as (

    select
        groups.run,
        groups.query_id,
        groups.sub_query,
        needed_evidence.evidence_no,
        needed_evidence.set_no,
        needed_evidence.need,
        coalesce(alone.coverage, 0) >= setting_values.min_coverage - 1e-9 as is_alone,
        coalesce(alone.coverage_possible, 0) >= setting_values.min_coverage - 1e-9 as may_be,
        coalesce(together.coverage, 0) >= setting_values.min_coverage - 1e-9 as is_there
    from groups
    inner join labels on groups.query_id = labels.query_id
    inner join needed_evidence on labels.evidence_no = needed_evidence.evidence_no
    cross join setting_values
    left join alone
        on
            groups.query_id = alone.query_id
            and groups.sub_query = alone.sub_query
            and labels.evidence_no = alone.evidence_no
    left join together on groups.query_id = together.query_id and labels.evidence_no = together.evidence_no

),

beside as (

    select
        spans.run,
        spans.sub_query,
        spans.is_alone,
        spans.may_be,
        count(*) filter (where spans.is_alone) over (partition by spans.query_id, spans.evidence_no) as n_finders
    from spans

),

span_counts as (

    select
        beside.run,
        beside.sub_query,
        count(*) as n_spans,
        count(*) filter (where beside.is_alone) as n_found,
        count(*) filter (where beside.is_alone and beside.n_finders = 1) as n_only_here,
        count(*) filter (where beside.may_be and not beside.is_alone) as n_maybe
    from beside
    group by beside.run, beside.sub_query

),

needs as (

    select
        spans.run,
        spans.query_id,
        spans.sub_query,
        spans.set_no,
        max(case when spans.is_alone then 1.0 else 0.0 end) as is_alone,
        max(case when spans.is_there then 1.0 else 0.0 end) as is_there
    from spans
    group by spans.run, spans.query_id, spans.sub_query, spans.set_no, spans.need

),

sets as (

    select
        needs.run,
        needs.query_id,
        needs.sub_query,
        avg(needs.is_alone) as recall_alone,
        avg(needs.is_there) as recall_all
    from needs
    group by needs.run, needs.query_id, needs.sub_query, needs.set_no

),

best as (

    select
        sets.run,
        sets.query_id,
        sets.sub_query,
        max(sets.recall_alone) as recall_alone,
        max(sets.recall_all) as recall_all
    from sets
    group by sets.run, sets.query_id, sets.sub_query

)

select
    best.run as run,
    nullif(best.sub_query, '') as sub_query,
    count(*) as n_queries,
    avg(best.recall_alone) as recall_alone,
    avg(best.recall_all) as recall_all,
    max(span_counts.n_spans) as n_spans,
    max(span_counts.n_found) as n_found,
    max(span_counts.n_only_here) as n_only_here,
    max(span_counts.n_maybe) as n_maybe
from best
inner join span_counts on best.run is not distinct from span_counts.run and best.sub_query = span_counts.sub_query
group by best.run, best.sub_query
order by best.run, sub_query nulls first
