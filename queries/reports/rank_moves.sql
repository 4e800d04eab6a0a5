-- report:  rank_moves
-- answers: at which rank did evidence go into each stage, and at which did it come out?
-- grain:   one row per run, stage, band of ranks before and band of ranks after
-- param:   run          varchar = null  a run's label; null = every run
-- column:  run          varchar  label of the service's configuration
-- column:  stage_order  bigint   the stage's place in the flow of the run
-- column:  kind         varchar  the stage's kind
-- column:  stage        varchar  the user's name for it
-- column:  from_before  integer  smallest rank of the band before; null = the evidence was not in what the stage took
-- column:  to_before    integer  largest rank of it; null in the last band, which is open
-- column:  from_after   integer  smallest rank of the band after; null = not in what it let through
-- column:  to_after     integer  largest rank of it; null in the last band, which is open
-- column:  n_spans      bigint   evidence spans in queries, best rank of a chunk that holds some of the span
-- column:  n_stage      bigint   spans of this stage in all bands
-- reads:   evidence_at_place, stage_recall
with

bands as (

    select
        bands.low,
        bands.high
    from (
        values (1, 1), (2, 3), (4, 5), (6, 8), (9, 10), (11, 20), (21, 50), (51, 100), (101, 1000), (1001, null)
    ) as bands (low, high)

),

ranks as (

    select
        evidence_at_place.run,
        evidence_at_place.query_id,
        evidence_at_place.evidence_id,
        evidence_at_place.kind,
        coalesce(evidence_at_place.name, evidence_at_place.kind) as stage,
        min(evidence_at_place.rank) filter (where evidence_at_place.side = 'in') as rank_before,
        min(evidence_at_place.rank) filter (where evidence_at_place.side = 'out') as rank_after
    from evidence_at_place
    where
        evidence_at_place.side in ('in', 'out')
        and (cast($run as varchar) is null or evidence_at_place.run = cast($run as varchar))
    group by
        evidence_at_place.run, evidence_at_place.query_id, evidence_at_place.evidence_id, evidence_at_place.kind,
        coalesce(evidence_at_place.name, evidence_at_place.kind)
    -- A retriever takes no list and a generate puts none out: nothing moves there.
    having
        count(*) filter (where evidence_at_place.side = 'in') > 0
        and count(*) filter (where evidence_at_place.side = 'out') > 0

),

moves as (

    select
        ranks.run,
        ranks.kind,
        ranks.stage,
        before.low as from_before,
        before.high as to_before,
        after.low as from_after,
        after.high as to_after,
        count(*) as n_spans
    from ranks
    left join bands as before on ranks.rank_before between before.low and coalesce(before.high, 2147483647)
    left join bands as after on ranks.rank_after between after.low and coalesce(after.high, 2147483647)
    where ranks.rank_before is not null or ranks.rank_after is not null
    group by ranks.run, ranks.kind, ranks.stage, before.low, before.high, after.low, after.high

)

select
    moves.run as run,
    stage_recall.stage_order as stage_order,
    moves.kind as kind,
    moves.stage as stage,
    moves.from_before as from_before,
    moves.to_before as to_before,
    moves.from_after as from_after,
    moves.to_after as to_after,
    moves.n_spans as n_spans,
    cast(sum(moves.n_spans) over (partition by moves.run, moves.kind, moves.stage) as bigint) as n_stage
from moves
inner join stage_recall
    on
        moves.run is not distinct from stage_recall.run
        and moves.kind = stage_recall.kind
        and moves.stage = stage_recall.stage
order by moves.run, stage_recall.stage_order, moves.stage, moves.from_before, moves.from_after
