-- check:   label_doubts
-- answers: which labels are used, but on trust?
-- grain:   one row per label that could not be checked, or whose quote and range differ in length,
--          and per question whose text another question has too
-- column:  problem      varchar  unchecked, inexact_range or question_repeated
-- column:  gold_set     varchar  questions.gold_set
-- column:  question_id  varchar  questions.question_id
-- column:  evidence_id  varchar  evidence.evidence_id; null for question_repeated
-- column:  doc_id       varchar  the document
-- column:  level        varchar  evidence.level
-- column:  start_at     integer  as labelled
-- column:  end_at       integer  as labelled
-- column:  quote        varchar  as labelled
-- column:  what_to_do   varchar  one sentence
-- reads:   questions, evidence, items
-- order:   gold_set, question_id, evidence_id
with

repeated as (

    select
        questions.question_hash,
        count(*) as n_questions
    from questions
    where questions.question_hash is not null
    group by questions.question_hash
    having count(*) > 1

),

-- A chunk id that no recorded chunk has is wrong; without any chunk there is nothing to hold it against.
chunks as (

    select count(*) as n_chunks
    from items

),

doubtful_labels as (

    select
        case
            when evidence.label_status in ('placed', 'normalized') then 'inexact_range'
            else 'unchecked'
        end as problem,
        questions.gold_set,
        evidence.question_id,
        evidence.evidence_id,
        evidence.doc_id,
        evidence.level,
        evidence.start_at,
        evidence.end_at,
        evidence.quote,
        coalesce(evidence.label_note, 'place the labels with a merge or a load') as what_to_do
    from evidence
    inner join questions on evidence.question_id = questions.question_id
    cross join chunks
    where
        (evidence.level <> 'chunk' or chunks.n_chunks = 0)
        and (
            coalesce(evidence.label_status, 'unplaced') = 'unplaced'
            or (
                evidence.label_status in ('placed', 'normalized')
                and evidence.end_at - evidence.start_at <> length(evidence.quote)
            )
        )

),

doubtful_questions as (

    select
        'question_repeated' as problem,
        questions.gold_set,
        questions.question_id,
        cast(null as varchar) as evidence_id,
        cast(null as varchar) as doc_id,
        cast(null as varchar) as level, -- noqa: references.keywords
        cast(null as integer) as start_at,
        cast(null as integer) as end_at,
        cast(null as varchar) as quote, -- noqa: references.keywords
        'other questions have the same text: give question_id to rt.query, its text does not tell them apart'
            as what_to_do
    from questions
    inner join repeated on questions.question_hash = repeated.question_hash

),

doubts as (

    select
        doubtful_labels.problem,
        doubtful_labels.gold_set,
        doubtful_labels.question_id,
        doubtful_labels.evidence_id,
        doubtful_labels.doc_id,
        doubtful_labels.level,
        doubtful_labels.start_at,
        doubtful_labels.end_at,
        doubtful_labels.quote,
        doubtful_labels.what_to_do
    from doubtful_labels

    union all

    select
        doubtful_questions.problem,
        doubtful_questions.gold_set,
        doubtful_questions.question_id,
        doubtful_questions.evidence_id,
        doubtful_questions.doc_id,
        doubtful_questions.level,
        doubtful_questions.start_at,
        doubtful_questions.end_at,
        doubtful_questions.quote,
        doubtful_questions.what_to_do
    from doubtful_questions

)

select
    doubts.problem,
    doubts.gold_set,
    doubts.question_id,
    doubts.evidence_id,
    doubts.doc_id,
    doubts.level,
    doubts.start_at,
    doubts.end_at,
    doubts.quote,
    doubts.what_to_do
from doubts
order by doubts.gold_set, doubts.question_id, doubts.evidence_id
