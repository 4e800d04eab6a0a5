-- report:  evidence_texts
-- answers: what are the passages that a labelled question needs?
-- grain:   one row per needed evidence span of the first set of a question
-- column:  question_id  varchar  questions.question_id
-- column:  evidence_id  varchar  evidence.evidence_id
-- column:  text         varchar  the passage: its quote, else cut from the text it was made on
-- reads:   evidence
select
    evidence.question_id as question_id,
    evidence.evidence_id as evidence_id,
    coalesce(evidence.span_text, evidence.quote) as text
from evidence
where evidence.is_need and evidence.set_no = 1 and coalesce(evidence.span_text, evidence.quote) is not null
order by evidence.question_id, evidence.evidence_id
