-- check:   labels
-- answers: which labels are wrong, and what is to be done with each?
-- grain:   one row per label that is wrong; none when all is well
-- column:  problem      varchar  misaligned, out_of_range, ambiguous, stale, deleted, text_missing, text_garbled,
--                                document_unknown, version_unknown or chunk_unknown
-- column:  gold_set     varchar  questions.gold_set
-- column:  question_id  varchar  questions.question_id
-- column:  evidence_id  varchar  evidence.evidence_id
-- column:  doc_id       varchar  the document
-- column:  level        varchar  evidence.level
-- column:  start_at     integer  as labelled
-- column:  end_at       integer  as labelled
-- column:  quote        varchar  as labelled
-- column:  what_to_do   varchar  one sentence
-- reads:   questions, evidence, evidence_places, parses, documents, items
-- order:   gold_set, question_id, evidence_id
with

labels as (

    select
        questions.gold_set,
        evidence.question_id,
        evidence.evidence_id,
        evidence.doc_id,
        evidence.doc_version,
        evidence.level,
        evidence.start_at,
        evidence.end_at,
        evidence.quote,
        evidence.label_status,
        evidence.label_note
    from evidence
    inner join questions on evidence.question_id = questions.question_id

),

newest_texts as (

    select
        parses.doc_id,
        arg_max(parses.text_hash, parses.parsed_at_ns) as text_hash,
        max(parses.n_characters) as n_characters
    from parses
    where parses.doc_id is not null and parses.text_hash is not null
    group by parses.doc_id

),

versions as (

    select distinct
        parses.doc_id,
        parses.doc_version
    from parses
    where parses.doc_version is not null

),

deletions as (

    select
        documents.doc_id,
        max(documents.deleted_at_ns) as deleted_at_ns,
        max(documents.recorded_at_ns) filter (where documents.deleted_at_ns is null) as lived_at_ns
    from documents
    where documents.doc_id is not null
    group by documents.doc_id

),

chunks as (

    select count(*) as n_chunks
    from items

),

found as (

    select
        evidence_places.evidence_id,
        bool_or(evidence_places.is_found) as is_found
    from evidence_places
    group by evidence_places.evidence_id

),

judged as (

    select
        labels.gold_set,
        labels.question_id,
        labels.evidence_id,
        labels.doc_id,
        labels.level,
        labels.start_at,
        labels.end_at,
        labels.quote,
        labels.label_note,
        case
            when labels.label_status = 'misaligned' and labels.end_at > newest_texts.n_characters then 'out_of_range'
            when labels.level = 'chunk' and labels.label_status = 'unplaced' and chunks.n_chunks > 0
                then 'chunk_unknown'
            when labels.label_status in ('misaligned', 'document_unknown') then labels.label_status
            when deletions.deleted_at_ns >= coalesce(deletions.lived_at_ns, deletions.deleted_at_ns) then 'deleted'
            when not newest_places.is_found and found.is_found then 'stale'
            when labels.label_status in ('ambiguous', 'text_missing', 'text_garbled') then labels.label_status
            when labels.doc_version is not null and newest_texts.doc_id is not null and versions.doc_id is null
                then 'version_unknown'
        end as problem
    from labels
    cross join chunks
    left join newest_texts on labels.doc_id = newest_texts.doc_id
    left join versions on labels.doc_id = versions.doc_id and labels.doc_version = versions.doc_version
    left join deletions on labels.doc_id = deletions.doc_id
    left join found on labels.evidence_id = found.evidence_id
    left join evidence_places as newest_places
        on labels.evidence_id = newest_places.evidence_id and newest_texts.text_hash = newest_places.text_hash

)

select
    judged.problem,
    judged.gold_set,
    judged.question_id,
    judged.evidence_id,
    judged.doc_id,
    judged.level,
    judged.start_at,
    judged.end_at,
    judged.quote,
    case judged.problem
        when 'deleted' then 'the document was deleted: take the label out, or label another document'
        when 'stale' then 'the newest parsed text no longer holds the passage: label it anew'
        else coalesce(judged.label_note, 'compare the label with the parsed text')
    end as what_to_do
from judged
where judged.problem is not null
order by judged.gold_set, judged.question_id, judged.evidence_id
