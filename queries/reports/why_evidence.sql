-- report:  why_evidence
-- answers: which evidence does a recorded query need, and what is said of its label?
-- grain:   one row per query and evidence span of its question
-- param:   query_id      bigint = null  queries.query_id; null = every query
-- param:   run           varchar = null  a run's label; null = every run
-- column:  query_id      bigint   queries.query_id
-- column:  evidence_id   varchar  evidence.evidence_id
-- column:  set_no        integer  any complete set is enough
-- column:  need          varchar  all needs of a set are needed, any span of a need is enough
-- column:  n_sets        bigint   sets of this question
-- column:  n_spans       bigint   spans of this need, of which one is enough
-- column:  level         varchar  span, page, section, document or chunk
-- column:  doc_id        varchar  the document
-- column:  chunk_id      varchar  level chunk
-- column:  span_text     varchar  the passage; null when neither labelled nor captured
-- column:  label_status  varchar  evidence.label_status
-- column:  label_note    varchar  what to do about the label
-- column:  state         varchar  judged, or why it is kept apart: label_states.state; null when the whole query is
-- reads:   query_scope, evidence, label_states, queries
with

needed as (

    select
        query_scope.query_id,
        evidence.evidence_id,
        evidence.set_no,
        evidence.need,
        evidence.level,
        evidence.doc_id,
        evidence.chunk_id,
        coalesce(evidence.span_text, evidence.quote) as span_text,
        evidence.label_status,
        evidence.label_note
    from query_scope
    inner join evidence on query_scope.question_id = evidence.question_id
    where
        evidence.is_need
        and (cast($query_id as bigint) is null or query_scope.query_id = cast($query_id as bigint))

)

select
    needed.query_id as query_id,
    needed.evidence_id as evidence_id,
    needed.set_no as set_no,
    needed.need as need,
    cast(max(needed.set_no) over (partition by needed.query_id) as bigint) as n_sets,
    count(*) over (partition by needed.query_id, needed.set_no, needed.need) as n_spans,
    needed.level as level,
    needed.doc_id as doc_id,
    needed.chunk_id as chunk_id,
    needed.span_text as span_text,
    needed.label_status as label_status,
    needed.label_note as label_note,
    label_states.state as state
from needed
left join label_states
    on
        needed.query_id = label_states.query_id
        and needed.evidence_id = label_states.evidence_id
where
    cast($run as varchar) is null
    or needed.query_id in (
        select queries.query_id
        from queries
        where queries.run = cast($run as varchar)
    )
order by needed.query_id, needed.set_no, needed.need, needed.evidence_id
