-- report:  recall_by_round
-- answers: what does each retrieval round of an agent loop add?
-- grain:   one row per run and round
-- param:   run             varchar = null  a run's label; null = every run
-- column:  run             varchar  label of the service's configuration
-- column:  round           integer  1-based; runs without a round count as the first
-- column:  n_queries       bigint   scored queries that got as far as this round
-- column:  recall_alone    double   mean share of needs found by this round's retrieve runs alone, best set
-- column:  recall_so_far   double   the same for this round and those before it, in the same queries
-- column:  n_spans         bigint   gold spans of these queries
-- column:  n_new           bigint   of these found whole from this round on, and not before it
-- column:  n_maybe         bigint   of these not surely found so far, that lists not recorded in full may hold
-- reads:   retrieve_runs, stages, query_scope, label_states, needed_evidence, piece_sightings, places, setting_values
with

runs as (

    select
        query_scope.run,
        retrieve_runs.query_id,
        retrieve_runs.stage_id,
        coalesce(stages.round, 1) as round
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
        runs.round
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
        runs.round,
        piece_sightings.evidence_no,
        piece_sightings.piece,
        max(piece_sightings.weight) as weight,
        max(piece_sightings.total) as total,
        bool_or(piece_sightings.is_sure and piece_sightings.is_own) as is_sure
    from runs
    inner join places on runs.query_id = places.query_id and runs.stage_id = places.stage_id and places.side = 'out'
    inner join piece_sightings
        on places.query_id = piece_sightings.query_id and places.place_no = piece_sightings.place_no
    group by runs.query_id, runs.round, piece_sightings.evidence_no, piece_sightings.piece

),

alone as (

    select
        pieces.query_id,
        pieces.round,
        pieces.evidence_no,
        sum(pieces.weight) filter (where pieces.is_sure) / nullif(max(pieces.total), 0) as coverage,
        sum(pieces.weight) / nullif(max(pieces.total), 0) as coverage_possible
    from pieces
    group by pieces.query_id, pieces.round, pieces.evidence_no

),

first_seen as (

    select
        groups.query_id,
        groups.round,
        pieces.evidence_no,
        pieces.piece,
        max(pieces.weight) as weight,
        max(pieces.total) as total,
        bool_or(pieces.is_sure) as is_sure
    from groups
    inner join pieces on groups.query_id = pieces.query_id and groups.round >= pieces.round
    group by groups.query_id, groups.round, pieces.evidence_no, pieces.piece

),

so_far as (

    select
        first_seen.query_id,
        first_seen.round,
        first_seen.evidence_no,
        sum(first_seen.weight) filter (where first_seen.is_sure) / nullif(max(first_seen.total), 0) as coverage,
        sum(first_seen.weight) / nullif(max(first_seen.total), 0) as coverage_possible
    from first_seen
    group by first_seen.query_id, first_seen.round, first_seen.evidence_no

),

spans as (

    select
        groups.run,
        groups.query_id,
        groups.round,
        needed_evidence.evidence_no,
        needed_evidence.set_no,
        needed_evidence.need,
        coalesce(alone.coverage, 0) >= setting_values.min_coverage - 1e-9 as is_alone,
        coalesce(so_far.coverage, 0) >= setting_values.min_coverage - 1e-9 as is_so_far,
        coalesce(so_far.coverage_possible, 0) >= setting_values.min_coverage - 1e-9 as may_be
    from groups
    inner join labels on groups.query_id = labels.query_id
    inner join needed_evidence on labels.evidence_no = needed_evidence.evidence_no
    cross join setting_values
    left join alone
        on
            groups.query_id = alone.query_id
            and groups.round = alone.round
            and labels.evidence_no = alone.evidence_no
    left join so_far
        on
            groups.query_id = so_far.query_id
            and groups.round = so_far.round
            and labels.evidence_no = so_far.evidence_no

),

moves as (

    select
        spans.run,
        spans.query_id,
        spans.round,
        spans.is_so_far,
        spans.may_be,
        lag(spans.is_so_far, 1, false) over (
            partition by spans.query_id, spans.evidence_no order by spans.round
        ) as was_found
    from spans

),

span_counts as (

    select
        moves.run,
        moves.round,
        count(*) as n_spans,
        count(*) filter (where moves.is_so_far and not moves.was_found) as n_new,
        count(*) filter (where moves.may_be and not moves.is_so_far) as n_maybe
    from moves
    group by moves.run, moves.round

),

needs as (

    select
        spans.run,
        spans.query_id,
        spans.round,
        spans.set_no,
        max(case when spans.is_alone then 1.0 else 0.0 end) as is_alone,
        max(case when spans.is_so_far then 1.0 else 0.0 end) as is_so_far
    from spans
    group by spans.run, spans.query_id, spans.round, spans.set_no, spans.need

),

sets as (

    select
        needs.run,
        needs.query_id,
        needs.round,
        avg(needs.is_alone) as recall_alone,
        avg(needs.is_so_far) as recall_so_far
    from needs
    group by needs.run, needs.query_id, needs.round, needs.set_no

),

best as (

    select
        sets.run,
        sets.query_id,
        sets.round,
        max(sets.recall_alone) as recall_alone,
        max(sets.recall_so_far) as recall_so_far
    from sets
    group by sets.run, sets.query_id, sets.round

)

select
    best.run as run,
    best.round as round,
    count(*) as n_queries,
    avg(best.recall_alone) as recall_alone,
    avg(best.recall_so_far) as recall_so_far,
    max(span_counts.n_spans) as n_spans,
    max(span_counts.n_new) as n_new,
    max(span_counts.n_maybe) as n_maybe
from best
inner join span_counts on best.run is not distinct from span_counts.run and best.round = span_counts.round
group by best.run, best.round
order by best.run, best.round
