-- report:  distractors
-- answers: how often does a labelled distractor stand before the first gold?
-- grain:   one row per run and stage, and the final context
-- param:   run                  varchar = null  a run's label; null = every run
-- column:  run                  varchar  label of the service's configuration
-- column:  kind                 varchar  the stage's kind; final context
-- column:  stage                varchar  the user's name for it; null for the final context
-- column:  n_queries            bigint   scored queries with labelled distractors and gold, one count a run of the stage
-- column:  n_distractor_first   bigint   of these with a distractor above the first gold, or without any gold
-- column:  n_gold_first         bigint   with the gold above the first distractor, or without any distractor
-- column:  n_both               bigint   with both in the same chunk, first of each
-- column:  n_neither            bigint   with neither
-- column:  median_distractor_rank  double  rank of the first distractor, where one is there
-- column:  median_gold_rank     double   rank of the first gold, where one is there
-- column:  n_left_out           bigint   scored queries of the run whose question has no distractor
-- reads:   query_scope, evidence, evidence_places, item_ranges, items, places, place_lists, candidates, stages
with

labels as (

    select
        query_scope.run,
        query_scope.query_id,
        query_scope.question_id,
        evidence.evidence_id,
        evidence.is_distractor,
        evidence.level,
        evidence.doc_id,
        evidence.chunk_id
    from query_scope
    inner join evidence on query_scope.question_id = evidence.question_id
    where
        (evidence.is_need or evidence.is_distractor)
        and query_scope.scope = 'scored'
        and (cast($run as varchar) is null or query_scope.run = cast($run as varchar))

),

asked as (

    select
        labels.run,
        labels.query_id,
        min(labels.question_id) as question_id,
        count(*) filter (where labels.is_distractor) as n_distractors,
        count(*) filter (where not labels.is_distractor) as n_gold
    from labels
    group by labels.run, labels.query_id

),

labelled as (

    select distinct
        labels.evidence_id,
        labels.level,
        labels.doc_id,
        labels.chunk_id
    from labels
    inner join asked on labels.query_id = asked.query_id
    where asked.n_distractors > 0

),

held as (

    select
        labelled.evidence_id,
        item_ranges.item
    from labelled
    inner join evidence_places on labelled.evidence_id = evidence_places.evidence_id and evidence_places.is_found
    inner join item_ranges
        on
            evidence_places.doc_id = item_ranges.doc_id
            and coalesce(evidence_places.text_hash, '') = coalesce(item_ranges.text_hash, '')
            and item_ranges.start_at < evidence_places.end_at
            and item_ranges.end_at > evidence_places.start_at
    where labelled.level in ('span', 'page', 'section') and item_ranges.role = 'own'
    union
    select
        labelled.evidence_id,
        items.item
    from labelled
    inner join items on labelled.doc_id = items.doc_id
    where labelled.level = 'document'
    union
    select
        labelled.evidence_id,
        items.item
    from labelled
    inner join items on labelled.chunk_id = items.chunk_id
    where labelled.level = 'chunk'

),

spots as (

    select
        places.query_id,
        places.place_no,
        places.step,
        coalesce(stages.kind, 'final context') as kind,
        stages.name as stage,
        place_lists.list_id
    from places
    inner join asked on places.query_id = asked.query_id and asked.n_distractors > 0
    inner join place_lists on places.query_id = place_lists.query_id and places.place_no = place_lists.place_no
    left join stages on places.stage_id = stages.stage_id
    where places.side in ('out', 'context')

),

ranks as (

    select
        spots.query_id,
        spots.place_no,
        spots.step,
        spots.kind,
        spots.stage,
        min(candidates.rank) filter (where labels.is_distractor) as distractor_rank,
        min(candidates.rank) filter (where not labels.is_distractor) as gold_rank
    from spots
    left join candidates on spots.list_id = candidates.list_id and candidates.is_kept is distinct from false
    left join held on candidates.item = held.item
    left join labels on spots.query_id = labels.query_id and held.evidence_id = labels.evidence_id
    group by spots.query_id, spots.place_no, spots.step, spots.kind, spots.stage

),

left_out as (

    select
        asked.run,
        count(*) filter (where asked.n_distractors = 0) as n_queries
    from asked
    group by asked.run

)

select
    asked.run as run,
    ranks.kind as kind,
    ranks.stage as stage,
    count(*) as n_queries,
    count(*) filter (
        where ranks.distractor_rank < ranks.gold_rank
        or (ranks.distractor_rank is not null and ranks.gold_rank is null)
    ) as n_distractor_first,
    count(*) filter (
        where ranks.gold_rank < ranks.distractor_rank
        or (ranks.gold_rank is not null and ranks.distractor_rank is null)
    ) as n_gold_first,
    count(*) filter (where ranks.gold_rank = ranks.distractor_rank) as n_both,
    count(*) filter (where ranks.gold_rank is null and ranks.distractor_rank is null) as n_neither,
    quantile_cont(ranks.distractor_rank, 0.5) as median_distractor_rank,
    quantile_cont(ranks.gold_rank, 0.5) as median_gold_rank,
    max(left_out.n_queries) as n_left_out
from ranks
inner join asked on ranks.query_id = asked.query_id
inner join left_out on asked.run is not distinct from left_out.run
where asked.n_gold > 0
group by asked.run, ranks.kind, ranks.stage
order by asked.run, min(ranks.step), ranks.kind, ranks.stage
