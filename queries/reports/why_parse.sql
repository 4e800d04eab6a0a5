-- report:  why_parse
-- answers: which evidence of a query is not in the parsed text as labelled, and what stands there instead?
-- grain:   one row per query and evidence span not found in the newest text before the query
-- param:   query_id     bigint = null  queries.query_id; null = every query
-- column:  query_id     bigint   queries.query_id
-- column:  evidence_id  varchar  evidence.evidence_id
-- column:  doc_id       varchar  the document
-- column:  text_hash    varchar  that text
-- column:  parser       varchar  name of the newest parse stage that put this text out
-- column:  quality      varchar  text_garbled (something like it is there) or text_missing (nothing is)
-- column:  similarity   double   0..1, share of its counting characters in the nearest passage
-- column:  start_at     integer  where the nearest passage stands; null when nothing is like it
-- column:  end_at       integer  one past its last character
-- column:  span_text    varchar  the evidence as labelled
-- column:  passage      varchar  what stands there in the parsed text; null without a place or a captured text
-- reads:   label_states, evidence, evidence_places, texts, parses, stages
with

parsers as (

    select
        parses.doc_id,
        parses.text_hash,
        arg_max(coalesce(stages.name, stages.kind), parses.stage_id) as parser
    from parses
    inner join stages on parses.stage_id = stages.stage_id
    group by parses.doc_id, parses.text_hash

)

select
    label_states.query_id as query_id,
    label_states.evidence_id as evidence_id,
    label_states.doc_id as doc_id,
    label_states.text_hash as text_hash,
    parsers.parser as parser,
    evidence_places.quality as quality,
    evidence_places.similarity as similarity,
    evidence_places.start_at as start_at,
    evidence_places.end_at as end_at,
    evidence.span_text as span_text,
    substring(
        texts.text, evidence_places.start_at + 1, evidence_places.end_at - evidence_places.start_at
    ) as passage
from label_states
inner join evidence on label_states.evidence_id = evidence.evidence_id
inner join evidence_places
    on
        label_states.evidence_id = evidence_places.evidence_id
        and label_states.text_hash = evidence_places.text_hash
left join texts on label_states.text_hash = texts.text_hash and texts.is_aligned
left join parsers on label_states.doc_id = parsers.doc_id and label_states.text_hash = parsers.text_hash
where
    not evidence_places.is_found
    and label_states.level = 'span'
    and (cast($query_id as bigint) is null or label_states.query_id = cast($query_id as bigint))
order by label_states.query_id, label_states.evidence_id
