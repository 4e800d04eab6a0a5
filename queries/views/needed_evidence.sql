-- view:    needed_evidence
-- answers: which gold spans count, and in which coordinates are they cut?
-- grain:   one row per evidence span that is a need (no distractor, grade above 0)
-- kept:    during a refresh
-- column:  evidence_no    bigint   small integer in order of evidence_id, valid within one statement
-- column:  evidence_id    varchar  evidence.evidence_id
-- column:  question_id    varchar  questions.question_id
-- column:  set_no         integer  any complete set is enough
-- column:  need           varchar  all needs of a set are needed, any span of a need is enough
-- column:  level          varchar  span, page, section, document or chunk
-- column:  doc_id         varchar  the document
-- column:  chunk_id       varchar  level chunk
-- column:  n_characters   bigint  length in the evidence's own coordinates; 1 where touching is enough
-- column:  span_text      varchar  what its pieces are weighed by; null = by length
-- column:  made_on_ns     bigint   first parse of the text the label was made on
-- column:  made_on_text_hash varchar  that text
-- column:  label_status   varchar  evidence.label_status
-- reads:   evidence
select
    row_number() over (order by evidence.evidence_id) as evidence_no,
    evidence.evidence_id,
    evidence.question_id,
    evidence.set_no,
    evidence.need,
    evidence.level,
    evidence.doc_id,
    evidence.chunk_id,
    case
        when evidence.level = 'span'
            then
                greatest(
                    coalesce(
                        evidence.n_characters, length(evidence.span_text), evidence.end_at - evidence.start_at,
                        length(evidence.quote), 1
                    ),
                    1
                )
        else 1
    end as n_characters,
    case when evidence.level = 'span' then evidence.span_text end as span_text,
    evidence.made_on_ns,
    evidence.made_on_text_hash,
    evidence.label_status
from evidence
where evidence.is_need
