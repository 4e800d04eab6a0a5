-- report:  retriever_alone
-- answers: what would each retriever have found alone, and what would be missed without it?
-- grain:   one row per run and retriever
-- param:   run            varchar = null  a run's label; null = every run
-- column:  run            varchar  label of the service's configuration
-- column:  retriever      varchar  the user's name for it
-- column:  n_queries      bigint   scored queries in which it ran
-- column:  n_spans        bigint   gold spans of these queries that count
-- column:  n_found        bigint   spans it found whole
-- column:  n_only_here    bigint   of these that no other retriever of the query found whole: what is missed without it
-- column:  n_found_by_others  bigint  spans it missed and another one found
-- column:  share_found    double   n_found of n_spans
-- column:  n_left_out     bigint   spans that do not count: its list could not be recorded in full, it may hold them
-- reads:   evidence_at_place, setting_values
with

found as (

    select
        evidence_at_place.run,
        evidence_at_place.query_id,
        evidence_at_place.evidence_id,
        coalesce(evidence_at_place.name, evidence_at_place.kind) as retriever,
        max(evidence_at_place.coverage) >= max(setting_values.min_coverage) - 1e-9 as is_found,
        max(evidence_at_place.coverage_possible) >= max(setting_values.min_coverage) - 1e-9 as may_be_found
    from evidence_at_place
    cross join setting_values
    where
        evidence_at_place.kind = 'retrieve'
        and evidence_at_place.side = 'out'
        and (cast($run as varchar) is null or evidence_at_place.run = cast($run as varchar))
    group by
        evidence_at_place.run, evidence_at_place.query_id, evidence_at_place.evidence_id,
        coalesce(evidence_at_place.name, evidence_at_place.kind)

),

beside as (

    select
        found.run,
        found.query_id,
        found.retriever,
        found.is_found,
        found.may_be_found and not found.is_found as is_left_out,
        count(*) filter (where found.is_found) over (partition by found.query_id, found.evidence_id) as n_retrievers
    from found

)

select
    beside.run as run,
    beside.retriever as retriever,
    count(distinct beside.query_id) as n_queries,
    count(*) filter (where not beside.is_left_out) as n_spans,
    count(*) filter (where beside.is_found) as n_found,
    count(*) filter (where beside.is_found and beside.n_retrievers = 1) as n_only_here,
    count(*) filter (where not beside.is_found and not beside.is_left_out and beside.n_retrievers > 0)
        as n_found_by_others,
    count(*) filter (where beside.is_found) / nullif(count(*) filter (where not beside.is_left_out), 0)
        as share_found,
    count(*) filter (where beside.is_left_out) as n_left_out
from beside
group by beside.run, beside.retriever
order by beside.run asc, n_found desc, beside.retriever asc
