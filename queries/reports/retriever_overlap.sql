-- report:  retriever_overlap
-- answers: which retrievers found the same evidence, and which would have found it alone?
-- grain:   one row per run and set of retrievers that found a span
-- param:   run           varchar = null  a run's label; null = every run
-- column:  run           varchar  label of the service's configuration
-- column:  found_by      varchar  the retrievers that found the span whole, joined by and; null = none did
-- column:  n_retrievers  bigint   how many they are; 1: found by this one only
-- column:  n_spans       bigint   gold spans in queries that exactly these found
-- column:  share         double   of the run's spans that count
-- column:  n_counted     bigint   spans that count
-- column:  n_left_out    bigint   spans that do not: a retriever's list could not be recorded in full, it may hold them
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

spans as (

    select
        found.run,
        found.query_id,
        found.evidence_id,
        string_agg(found.retriever, ' and ' order by found.retriever) filter (where found.is_found) as found_by,
        count(*) filter (where found.is_found) as n_retrievers,
        bool_or(found.may_be_found and not found.is_found) as is_left_out
    from found
    group by found.run, found.query_id, found.evidence_id

),

totals as (

    select
        spans.run,
        count(*) filter (where not spans.is_left_out) as n_counted,
        count(*) filter (where spans.is_left_out) as n_left_out
    from spans
    group by spans.run

)

select
    totals.run as run,
    spans.found_by as found_by,
    coalesce(max(spans.n_retrievers), 0) as n_retrievers,
    count(spans.evidence_id) as n_spans,
    count(spans.evidence_id) / nullif(max(totals.n_counted), 0) as share,
    max(totals.n_counted) as n_counted,
    max(totals.n_left_out) as n_left_out
from totals
left join spans on totals.run is not distinct from spans.run and not spans.is_left_out
group by totals.run, spans.found_by
order by totals.run asc, n_spans desc, spans.found_by asc
