-- report:  why_text
-- answers: what stands around the evidence of a query, as far as texts were captured?
-- grain:   one row per query, evidence span and captured text that holds it
-- param:   query_id      bigint = null  queries.query_id; null = every query
-- param:   run           varchar = null  a run's label; null = every run
-- param:   n_characters  integer = 80   how much before and after, in code points
-- column:  query_id      bigint   queries.query_id
-- column:  evidence_id   varchar  evidence.evidence_id
-- column:  doc_id        varchar  the document
-- column:  text_hash     varchar  the parsed text
-- column:  is_current    boolean  the newest text parsed before the query
-- column:  start_at      integer  where the passage stands, in code points
-- column:  end_at        integer  one past its last character
-- column:  quality       varchar  exact, normalized or ambiguous
-- column:  before        varchar  the text before it
-- column:  passage       varchar  the passage as it stands in this text
-- column:  after         varchar  the text behind it
-- reads:   label_states, evidence_places, texts, queries
with

placed as (

    select
        label_states.query_id,
        label_states.evidence_id,
        evidence_places.doc_id,
        evidence_places.text_hash,
        coalesce(evidence_places.text_hash = label_states.text_hash, false) as is_current,
        evidence_places.start_at,
        evidence_places.end_at,
        evidence_places.quality,
        texts.text
    from label_states
    inner join evidence_places on label_states.evidence_id = evidence_places.evidence_id
    inner join texts on evidence_places.text_hash = texts.text_hash
    where
        (cast($query_id as bigint) is null or label_states.query_id = cast($query_id as bigint))
        and label_states.level = 'span'
        and evidence_places.is_found
        and evidence_places.start_at is not null
        -- Redaction changed the text's length: offsets do not hold.
        and texts.is_aligned

)

select
    placed.query_id as query_id,
    placed.evidence_id as evidence_id,
    placed.doc_id as doc_id,
    placed.text_hash as text_hash,
    placed.is_current as is_current,
    placed.start_at as start_at,
    placed.end_at as end_at,
    placed.quality as quality,
    substring(
        placed.text, greatest(placed.start_at - $n_characters, 0) + 1, least(placed.start_at, $n_characters)
    ) as before,
    substring(placed.text, placed.start_at + 1, placed.end_at - placed.start_at) as passage,
    substring(placed.text, placed.end_at + 1, $n_characters) as after
from placed
where
    cast($run as varchar) is null
    or placed.query_id in (
        select queries.query_id
        from queries
        where queries.run = cast($run as varchar)
    )
order by placed.query_id asc, placed.evidence_id asc, placed.is_current desc, placed.text_hash asc
