-- view:    text_spans
-- answers: which parsed text did a document have, and when?
-- grain:   one row per document and stretch of time with one newest text; the time before the first parse is one
-- column:  doc_id            varchar  the document
-- column:  text_hash         varchar  its newest parsed text; null before the first parse
-- column:  from_ns           bigint   from here on, inclusive
-- column:  to_ns             bigint   up to here, exclusive
-- column:  before_text_hash  varchar  the text before; null = none
-- column:  after_text_hash   varchar  the text after; null = none yet
-- column:  from_process_id   bigint   who recorded the beginning
-- column:  to_process_id     bigint   who recorded the end
-- reads:   parses
with

parsed as (

    select
        parses.doc_id,
        parses.text_hash,
        parses.parsed_at_ns,
        parses.stage_id,
        parses.process_id,
        lag(parses.text_hash) over (
            partition by parses.doc_id order by parses.parsed_at_ns, parses.stage_id
        ) as before_text_hash
    from parses
    where parses.doc_id is not null and parses.text_hash is not null

),

changes as (

    select
        parsed.doc_id,
        parsed.text_hash,
        parsed.parsed_at_ns,
        parsed.stage_id,
        parsed.process_id,
        parsed.before_text_hash
    from parsed
    where parsed.before_text_hash is null or parsed.before_text_hash <> parsed.text_hash

),

first_changes as (

    select
        changes.doc_id,
        changes.text_hash,
        changes.parsed_at_ns,
        changes.process_id
    from changes
    where changes.before_text_hash is null

)

select
    changes.doc_id,
    changes.text_hash,
    changes.parsed_at_ns as from_ns,
    coalesce(lead(changes.parsed_at_ns) over later, 4611686018427387904) as to_ns,
    changes.before_text_hash,
    lead(changes.text_hash) over later as after_text_hash,
    changes.process_id as from_process_id,
    lead(changes.process_id) over later as to_process_id
from changes
window later as (partition by changes.doc_id order by changes.parsed_at_ns, changes.stage_id)

union all

select
    first_changes.doc_id,
    null as text_hash,
    -4611686018427387904 as from_ns,
    first_changes.parsed_at_ns as to_ns,
    null as before_text_hash,
    first_changes.text_hash as after_text_hash,
    null as from_process_id,
    first_changes.process_id as to_process_id
from first_changes
