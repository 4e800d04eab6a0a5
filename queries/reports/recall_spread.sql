-- report:  recall_spread
-- answers: how is recall spread over the questions, and what share of them is below one half and below one?
-- grain:   one row per run, cut and tenth of recall; recall 1 is a row of its own
-- param:   run          varchar = null  a run's label; null = every run
-- column:  run          varchar  label of the service's configuration
-- column:  cut          varchar  candidates or final context
-- column:  from_recall  double   recalls of this row are at least this
-- column:  to_recall    double   and less than this; 1 in the last row, which holds recall 1 alone
-- column:  n_queries    bigint   judged queries with such a recall
-- column:  n_judged     bigint   judged queries of the run
-- column:  share        double   n_queries of n_judged
-- column:  share_below  double   share of the judged with a recall below from_recall
-- reads:   query_recall
with

recalls as (

    select
        query_recall.run,
        'candidates' as cut,
        query_recall.candidate_recall as recall
    from query_recall
    where query_recall.is_judged and (cast($run as varchar) is null or query_recall.run = cast($run as varchar))
    union all
    select
        query_recall.run,
        'final context' as cut,
        query_recall.final_context_recall as recall
    from query_recall
    where query_recall.is_judged and (cast($run as varchar) is null or query_recall.run = cast($run as varchar))

),

ranked as (

    select
        recalls.run,
        recalls.cut,
        -- Shares of small counts: 0.3 is a little less than 3 tenths in binary.
        cast(floor(recalls.recall * 10 + 1e-9) as integer) as tenth
    from recalls

),

tenths as (

    select
        ranked.run,
        ranked.cut,
        ranked.tenth,
        count(*) as n_queries
    from ranked
    group by ranked.run, ranked.cut, ranked.tenth

),

cuts as (

    select distinct
        recalls.run,
        recalls.cut
    from recalls

),

every_tenth as (

    select
        cuts.run,
        cuts.cut,
        cast(unnest(generate_series(0, 10)) as integer) as tenth
    from cuts

),

counted as (

    select
        every_tenth.run,
        every_tenth.cut,
        every_tenth.tenth,
        coalesce(tenths.n_queries, 0) as n_queries,
        cast(sum(coalesce(tenths.n_queries, 0)) over (partition by every_tenth.run, every_tenth.cut) as bigint)
            as n_judged,
        cast(coalesce(sum(tenths.n_queries) over (
            partition by every_tenth.run, every_tenth.cut
            order by every_tenth.tenth
            rows between unbounded preceding and 1 preceding
        ), 0) as bigint) as n_below
    from every_tenth
    left join tenths
        on
            every_tenth.run is not distinct from tenths.run
            and every_tenth.cut = tenths.cut
            and every_tenth.tenth = tenths.tenth

)

select
    counted.run as run,
    counted.cut as cut,
    counted.tenth / 10.0 as from_recall,
    least((counted.tenth + 1) / 10.0, 1.0) as to_recall,
    counted.n_queries as n_queries,
    counted.n_judged as n_judged,
    counted.n_queries / nullif(counted.n_judged, 0) as share,
    counted.n_below / nullif(counted.n_judged, 0) as share_below
from counted
order by run, cut, from_recall
