-- report:  distractor_ranks
-- answers: at which rank stands the first labelled distractor, and at which the first gold, stage by stage?
-- grain:   one row per query whose question has distractors, and stage run or the final context
-- param:   query_id         bigint = null  queries.query_id; null = every query
-- column:  run              varchar  label of the service's configuration
-- column:  query_id         bigint   queries.query_id
-- column:  question_id      varchar  the labelled question
-- column:  place_no         integer  in flow order
-- column:  kind             varchar  the stage's kind; final context
-- column:  stage            varchar  the user's name for it; null for the final context
-- column:  distractor_rank  integer  best rank of a chunk with some of a distractor; null = none was there
-- column:  gold_rank        integer  best rank of a chunk with some of the gold; null = none was there
-- column:  first            varchar  distractor, gold, both (one chunk has both) or neither
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
        and (cast($query_id as bigint) is null or query_scope.query_id = cast($query_id as bigint))

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

)

select
    asked.run as run,
    ranks.query_id as query_id,
    asked.question_id as question_id,
    ranks.place_no as place_no,
    ranks.kind as kind,
    ranks.stage as stage,
    ranks.distractor_rank as distractor_rank,
    ranks.gold_rank as gold_rank,
    case
        when ranks.distractor_rank is null and ranks.gold_rank is null then 'neither'
        when ranks.distractor_rank = ranks.gold_rank then 'both'
        when ranks.gold_rank is null or ranks.distractor_rank < ranks.gold_rank then 'distractor'
        else 'gold'
    end as first
from ranks
inner join asked on ranks.query_id = asked.query_id
order by asked.run, ranks.query_id, ranks.place_no
