-- view:    rank_labels
-- answers: what is relevant to a query, in each unit, and how much?
-- grain:   one row per query that can be measured, unit and relevant document, chunk or span, over all its sets
-- kept:    in the store
-- column:  query_id      bigint   queries.query_id
-- column:  unit          varchar  document; chunk where chunks are labelled by id; span where passages are
-- column:  relevant      varchar  doc_id, chunk_id or evidence_id
-- column:  grade         double   the highest of its labels
-- reads:   label_states, evidence
with

judged as materialized (

    select
        label_states.query_id,
        evidence.evidence_id,
        evidence.level,
        evidence.doc_id,
        evidence.chunk_id,
        coalesce(evidence.grade, 1) as grade
    from label_states
    inner join evidence on label_states.evidence_id = evidence.evidence_id
    where label_states.is_scored

),

units as (

    select
        judged.query_id,
        'document' as unit,
        judged.doc_id as relevant,
        judged.grade
    from judged
    where judged.doc_id is not null

    union all

    select
        judged.query_id,
        'chunk' as unit,
        judged.chunk_id as relevant,
        judged.grade
    from judged
    where judged.level = 'chunk' and judged.chunk_id is not null

    union all

    select
        judged.query_id,
        'span' as unit,
        judged.evidence_id as relevant,
        judged.grade
    from judged
    where judged.level not in ('document', 'chunk')

)

select
    units.query_id,
    units.unit,
    units.relevant,
    max(units.grade) as grade
from units
group by units.query_id, units.unit, units.relevant
