-- report:  gold_status
-- answers: what does each loaded gold set hold, how much of it is placed, and who answers for it?
-- grain:   one row per gold set
-- column:  gold_set             varchar  name of the set
-- column:  n_questions          bigint   labelled questions
-- column:  n_asked              bigint   of these, questions that a recorded query asked
-- column:  n_unanswerable       bigint   questions the documents do not answer
-- column:  n_evidence_unknown   bigint   questions whose evidence nobody knows
-- column:  n_sets               bigint   sets of evidence, any of which is enough
-- column:  n_needs              bigint   needs over all sets
-- column:  n_spans              bigint   labels that serve a need
-- column:  n_not_needed         bigint   labels of grade 0 or less
-- column:  n_distractors        bigint   labels of misleading passages
-- column:  n_level_span         bigint   needed labels of level span
-- column:  n_level_page         bigint   of level page
-- column:  n_level_section      bigint   of level section
-- column:  n_level_document     bigint   of level document
-- column:  n_level_chunk        bigint   of level chunk
-- column:  n_mode_all           bigint   questions of gold_mode all
-- column:  n_mode_any           bigint   of gold_mode any
-- column:  n_mode_one_per_answer bigint  of gold_mode one_per_answer
-- column:  n_placed             bigint   labels that stand where they say, or where their quote is
-- column:  n_normalized         bigint   labels whose quote was found in normal form
-- column:  n_ambiguous          bigint   labels whose quote stands several times
-- column:  n_misaligned         bigint   labels whose quote is not at their offsets
-- column:  n_missing            bigint   labels whose quote is in no parsed text, or only damaged
-- column:  n_document_unknown   bigint   labels of documents that are not recorded
-- column:  n_unplaced           bigint   labels that could not be checked
-- column:  placed_share         double   share of the labels that are placed or normalized; null without labels
-- column:  source_share         double   share of the questions that say where they come from
-- column:  reviewed_share       double   share of the questions that somebody reviewed
-- reads:   questions, evidence, queries
-- order:   gold_set
with

asked as (

    select questions.question_id
    from questions
    inner join queries on questions.question_id = queries.question_id
    union
    select questions.question_id
    from questions
    inner join queries on questions.question_hash = queries.question_hash
    where queries.question_id is null

),

by_question as (

    select
        questions.gold_set,
        count(*) as n_questions,
        count(asked.question_id) as n_asked,
        count(*) filter (where questions.is_unanswerable) as n_unanswerable,
        count(*) filter (where questions.is_evidence_unknown) as n_evidence_unknown,
        count(*) filter (where questions.gold_mode = 'all') as n_mode_all,
        count(*) filter (where questions.gold_mode = 'any') as n_mode_any,
        count(*) filter (where questions.gold_mode = 'one_per_answer') as n_mode_one_per_answer,
        count(questions.source) as n_sourced,
        count(questions.reviewed_by) as n_reviewed
    from questions
    left join asked on questions.question_id = asked.question_id
    group by questions.gold_set

),

by_label as (

    select
        questions.gold_set,
        count(distinct case when evidence.is_need then concat_ws(chr(0), evidence.question_id, evidence.set_no) end)
            as n_sets,
        count(
            distinct case
                when evidence.is_need then concat_ws(chr(0), evidence.question_id, evidence.set_no, evidence.need)
            end
        ) as n_needs,
        count(*) filter (where evidence.is_need) as n_spans,
        count(*) filter (where not evidence.is_need and not evidence.is_distractor) as n_not_needed,
        count(*) filter (where evidence.is_distractor) as n_distractors,
        count(*) filter (where evidence.is_need and evidence.level = 'span') as n_level_span,
        count(*) filter (where evidence.is_need and evidence.level = 'page') as n_level_page,
        count(*) filter (where evidence.is_need and evidence.level = 'section') as n_level_section,
        count(*) filter (where evidence.is_need and evidence.level = 'document') as n_level_document,
        count(*) filter (where evidence.is_need and evidence.level = 'chunk') as n_level_chunk,
        count(*) as n_labels,
        count(*) filter (where evidence.label_status = 'placed') as n_placed,
        count(*) filter (where evidence.label_status = 'normalized') as n_normalized,
        count(*) filter (where evidence.label_status = 'ambiguous') as n_ambiguous,
        count(*) filter (where evidence.label_status = 'misaligned') as n_misaligned,
        count(*) filter (where evidence.label_status in ('text_missing', 'text_garbled')) as n_missing,
        count(*) filter (where evidence.label_status = 'document_unknown') as n_document_unknown,
        count(*) filter (where coalesce(evidence.label_status, 'unplaced') = 'unplaced') as n_unplaced
    from evidence
    inner join questions on evidence.question_id = questions.question_id
    group by questions.gold_set

)

select
    by_question.gold_set,
    by_question.n_questions,
    by_question.n_asked,
    by_question.n_unanswerable,
    by_question.n_evidence_unknown,
    coalesce(by_label.n_sets, 0) as n_sets,
    coalesce(by_label.n_needs, 0) as n_needs,
    coalesce(by_label.n_spans, 0) as n_spans,
    coalesce(by_label.n_not_needed, 0) as n_not_needed,
    coalesce(by_label.n_distractors, 0) as n_distractors,
    coalesce(by_label.n_level_span, 0) as n_level_span,
    coalesce(by_label.n_level_page, 0) as n_level_page,
    coalesce(by_label.n_level_section, 0) as n_level_section,
    coalesce(by_label.n_level_document, 0) as n_level_document,
    coalesce(by_label.n_level_chunk, 0) as n_level_chunk,
    by_question.n_mode_all,
    by_question.n_mode_any,
    by_question.n_mode_one_per_answer,
    coalesce(by_label.n_placed, 0) as n_placed,
    coalesce(by_label.n_normalized, 0) as n_normalized,
    coalesce(by_label.n_ambiguous, 0) as n_ambiguous,
    coalesce(by_label.n_misaligned, 0) as n_misaligned,
    coalesce(by_label.n_missing, 0) as n_missing,
    coalesce(by_label.n_document_unknown, 0) as n_document_unknown,
    coalesce(by_label.n_unplaced, 0) as n_unplaced,
    (by_label.n_placed + by_label.n_normalized) / nullif(cast(by_label.n_labels as double), 0) as placed_share,
    by_question.n_sourced / nullif(cast(by_question.n_questions as double), 0) as source_share,
    by_question.n_reviewed / nullif(cast(by_question.n_questions as double), 0) as reviewed_share
from by_question
left join by_label on by_question.gold_set = by_label.gold_set
order by by_question.gold_set
