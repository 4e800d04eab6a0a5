-- report:  parse_survival
-- answers: how much of the gold text survived each parser?
-- grain:   one row per parser and document, and one per parser over all documents (doc_id null)
-- param:   doc_id          varchar = null  a document; null = every document
-- column:  parser          varchar  name of the parse stage
-- column:  doc_id          varchar  the document; null = all of them together
-- column:  n_texts         bigint   parsed texts: the newest of each document
-- column:  n_empty         bigint   of these without any character
-- column:  n_spans         bigint   gold spans looked for in them
-- column:  n_found         bigint   of these there, to the letter or off by blanks, form and punctuation
-- column:  n_garbled       bigint   there with other letters
-- column:  n_missing       bigint   nothing like it is there
-- column:  n_counting      bigint   counting characters of the spans looked for
-- column:  share_survived  double   share of the counting characters that survived; of a garbled span those in order
-- column:  n_left_out      bigint   spans not looked for: the text was not captured, was redacted, or the label is misaligned
-- reads:   parses, stages, evidence, evidence_places
with

texts as (

    select
        coalesce(stages.name, stages.kind) as parser,
        parses.doc_id,
        arg_max(parses.text_hash, parses.stage_id) as text_hash,
        arg_max(parses.n_characters, parses.stage_id) as n_characters
    from parses
    inner join stages on parses.stage_id = stages.stage_id
    where
        parses.doc_id is not null
        and (cast($doc_id as varchar) is null or parses.doc_id = cast($doc_id as varchar))
    group by coalesce(stages.name, stages.kind), parses.doc_id

),

spans as (

    select
        evidence.evidence_id,
        evidence.doc_id,
        evidence.label_status = 'misaligned' as is_misaligned,
        coalesce(
            nullif(length(regexp_replace(evidence.span_text, '[^\p{L}\p{N}\p{M}\p{S}]+', '', 'g')), 0),
            length(evidence.span_text)
        ) as n_counting
    from evidence
    where evidence.is_need and evidence.level = 'span'

),

places as (

    select
        evidence_places.evidence_id,
        evidence_places.text_hash,
        evidence_places.quality,
        evidence_places.is_found,
        evidence_places.similarity
    from evidence_places
    where evidence_places.text_hash is not null and evidence_places.quality <> 'unchecked'

),

looked as (

    select
        texts.parser,
        texts.doc_id,
        spans.evidence_id,
        spans.n_counting,
        places.quality,
        spans.evidence_id is not null
        and (places.evidence_id is null or coalesce(spans.is_misaligned, false) or spans.n_counting is null)
            as is_left_out,
        case
            when places.is_found then 1.0
            when places.quality = 'text_garbled' then coalesce(places.similarity, 0.0)
            else 0.0
        end as share
    from texts
    left join spans on texts.doc_id = spans.doc_id
    left join places on spans.evidence_id = places.evidence_id and texts.text_hash = places.text_hash

),

sums as (

    select
        looked.parser,
        looked.doc_id,
        count(looked.evidence_id) filter (where not looked.is_left_out) as n_spans,
        count(*) filter (where not looked.is_left_out and looked.quality = 'text_garbled') as n_garbled,
        count(*) filter (where not looked.is_left_out and looked.quality = 'text_missing') as n_missing,
        coalesce(sum(looked.n_counting) filter (where not looked.is_left_out), 0) as n_counting,
        coalesce(sum(looked.n_counting * looked.share) filter (where not looked.is_left_out), 0.0) as n_survived,
        count(*) filter (where looked.is_left_out) as n_left_out
    from looked
    group by looked.parser, looked.doc_id

)

select
    sums.parser as parser,
    sums.doc_id as doc_id,
    count(*) as n_texts,
    count(*) filter (where texts.n_characters = 0) as n_empty,
    cast(sum(sums.n_spans) as bigint) as n_spans,
    cast(sum(sums.n_spans - sums.n_garbled - sums.n_missing) as bigint) as n_found,
    cast(sum(sums.n_garbled) as bigint) as n_garbled,
    cast(sum(sums.n_missing) as bigint) as n_missing,
    cast(sum(sums.n_counting) as bigint) as n_counting,
    cast(sum(sums.n_survived) as double) / nullif(sum(sums.n_counting), 0) as share_survived,
    cast(sum(sums.n_left_out) as bigint) as n_left_out
from sums
inner join texts on sums.parser = texts.parser and sums.doc_id = texts.doc_id
group by grouping sets ((sums.parser), (sums.parser, sums.doc_id))
order by sums.doc_id asc nulls first, share_survived desc nulls last, sums.parser asc
