-- view:    evidence_cuts
-- answers: into which pieces do chunk borders cut the evidence, what do they weigh, and which items hold them?
-- grain:   one row per piece and item that holds it; one with item null for a piece that no item holds
-- kept:    during a refresh
-- column:  evidence_no  bigint   needed_evidence.evidence_no
-- column:  piece        bigint   small integer, unique over all evidence, valid within one statement
-- column:  weight       bigint   counting characters (letters, digits, marks, symbols) in it; all when the span has none
-- column:  total        bigint   sum of the weights of the evidence's pieces
-- column:  item         integer  items.item
-- column:  role         varchar  own, possible or stands_for
-- reads:   needed_evidence, item_covers
with

covers as materialized (

    select
        item_covers.item,
        item_covers.evidence_no,
        item_covers.from_at,
        item_covers.to_at,
        item_covers.role
    from item_covers
    where item_covers.to_at > item_covers.from_at

),

borders as (

    select
        needed_evidence.evidence_no,
        0 as at
    from needed_evidence
    union
    select
        needed_evidence.evidence_no,
        needed_evidence.n_characters as at
    from needed_evidence
    union
    select
        covers.evidence_no,
        covers.from_at as at
    from covers
    union
    select
        covers.evidence_no,
        covers.to_at as at
    from covers

),

stretches as (

    select
        borders.evidence_no,
        borders.at as from_at,
        lead(borders.at) over (partition by borders.evidence_no order by borders.at) as to_at,
        count(*) over (partition by borders.evidence_no) as n_borders
    from borders

),

weighed as (

    select
        stretches.evidence_no,
        stretches.from_at,
        stretches.to_at,
        stretches.to_at - stretches.from_at as n_characters,
        case
            -- A span that nothing cuts needs no weighing: counting characters costs more than all the rest here.
            when stretches.n_borders = 2 or needed_evidence.span_text is null then 0
            else length(regexp_replace(
                substring(needed_evidence.span_text, stretches.from_at + 1, stretches.to_at - stretches.from_at),
                '[^\p{L}\p{N}\p{M}\p{S}]+', '', 'g'
            ))
        end as n_counting
    from stretches
    inner join needed_evidence on stretches.evidence_no = needed_evidence.evidence_no
    where stretches.to_at is not null

),

summed as (

    select
        weighed.evidence_no,
        weighed.from_at,
        weighed.to_at,
        weighed.n_characters,
        weighed.n_counting,
        sum(weighed.n_counting) over (partition by weighed.evidence_no) as sum_counting,
        sum(weighed.n_characters) over (partition by weighed.evidence_no) as sum_characters,
        row_number() over (order by weighed.evidence_no, weighed.from_at) as piece
    from weighed

)

select
    summed.evidence_no,
    summed.piece,
    cast(case when summed.sum_counting > 0 then summed.n_counting else summed.n_characters end as bigint) as weight,
    cast(case when summed.sum_counting > 0 then summed.sum_counting else summed.sum_characters end as bigint) as total,
    covers.item,
    covers.role
from summed
left join covers
    on
        summed.evidence_no = covers.evidence_no
        and summed.from_at >= covers.from_at
        and summed.to_at <= covers.to_at
