-- view:    rank_metrics
-- answers: how good is each ranked list of a query, down to each depth?
-- grain:   one row per query, ranked list, unit and depth; lists that are not recorded in full are not measured
-- column:  query_id             bigint   queries.query_id
-- column:  place_no             integer  places.place_no
-- column:  unit                 varchar  document, chunk or span
-- column:  k                    bigint   rank_cutoffs.k
-- column:  n_relevant           bigint   relevant documents, chunks or spans, all that are labelled
-- column:  n_returned           bigint   candidates in the list, repeats counted
-- column:  n_found              bigint   relevant ones within the first k, each at its first rank
-- column:  outcome              varchar  found; useless: candidates, none of the first k relevant; nothing returned
-- column:  recall               double   n_found / n_relevant
-- column:  precision            double   of the first k ranks, those relevant / k, however few were returned
-- column:  hit                  double   1 when one of the first k is relevant, else 0
-- column:  reciprocal_rank      double   1 / first relevant rank within k, else 0
-- column:  ndcg_exponential     double   gain 2^grade - 1; discount 1 / log2(rank + 1); ideal over all labelled (Burges 2005); null for spans
-- column:  ndcg_linear          double   gain grade; discount and ideal as before (Järvelin and Kekäläinen 2002, as trec_eval); null for spans
-- column:  average_precision    double   sum of precision at each relevant rank / n_relevant, as trec_eval; null for spans
-- column:  ragas_context_ap     double   sum of precision at each relevant rank / (relevant ranks + 1e-10), as Ragas' context precision; null when nothing was returned
-- column:  id_precision         double   relevant ranks / ranks returned within k, as Ragas' id-based context precision where no id repeats; null when nothing was returned
-- reads:   rank_labels, rank_lists, rank_hits, rank_cutoffs
with

-- Relevant ranks are counted by themselves: for spans those that hold some of one.
hits as (

    select
        rank_hits.query_id,
        rank_hits.place_no,
        rank_hits.unit,
        rank_hits.relevant,
        rank_hits.rank,
        rank_hits.grade,
        (rank_hits.unit = 'span') = (rank_hits.relevant is null) as is_rank,
        row_number() over (
            partition by rank_hits.query_id, rank_hits.place_no, rank_hits.unit, rank_hits.relevant is null
            order by rank_hits.rank
        ) as n_ranks
    from rank_hits

),

found as (

    select
        hits.query_id,
        hits.place_no,
        hits.unit,
        rank_cutoffs.k,
        count(hits.relevant) as n_found,
        sum((power(2, hits.grade) - 1) / log2(hits.rank + 1)) as exponential,
        sum(hits.grade / log2(hits.rank + 1)) as linear,
        count(*) filter (where hits.is_rank) as n_ranks,
        min(hits.rank) filter (where hits.is_rank) as first_rank,
        sum(hits.n_ranks / hits.rank) filter (where hits.is_rank) as precisions
    from hits
    inner join rank_cutoffs on hits.rank <= rank_cutoffs.k
    group by hits.query_id, hits.place_no, hits.unit, rank_cutoffs.k

),

labelled as (

    select
        rank_labels.query_id,
        rank_labels.unit,
        rank_labels.grade,
        row_number() over (
            partition by rank_labels.query_id, rank_labels.unit order by rank_labels.grade desc
        ) as rank
    from rank_labels

),

ideal as (

    select
        labelled.query_id,
        labelled.unit,
        rank_cutoffs.k,
        count(*) as n_relevant,
        sum((power(2, labelled.grade) - 1) / log2(labelled.rank + 1)) filter (where labelled.rank <= rank_cutoffs.k)
            as exponential,
        sum(labelled.grade / log2(labelled.rank + 1)) filter (where labelled.rank <= rank_cutoffs.k) as linear
    from labelled
    cross join rank_cutoffs
    group by labelled.query_id, labelled.unit, rank_cutoffs.k

),

measured as (

    select
        rank_lists.query_id,
        rank_lists.place_no,
        ideal.unit,
        ideal.k,
        ideal.n_relevant,
        rank_lists.n_returned,
        coalesce(found.n_found, 0) as n_found,
        coalesce(found.n_ranks, 0) as n_ranks,
        found.first_rank,
        coalesce(found.precisions, 0) as precisions,
        coalesce(found.exponential, 0) / ideal.exponential as ndcg_exponential,
        coalesce(found.linear, 0) / ideal.linear as ndcg_linear,
        least(ideal.k, rank_lists.n_returned) as n_seen
    from rank_lists
    inner join ideal on rank_lists.query_id = ideal.query_id
    left join found
        on
            rank_lists.query_id = found.query_id
            and rank_lists.place_no = found.place_no
            and ideal.unit = found.unit
            and ideal.k = found.k
    where rank_lists.is_complete

)

select
    measured.query_id,
    measured.place_no,
    measured.unit,
    measured.k,
    measured.n_relevant,
    measured.n_returned,
    measured.n_found,
    case
        when measured.n_returned = 0 then 'nothing returned'
        when measured.n_ranks = 0 then 'useless'
        else 'found'
    end as outcome,
    measured.n_found / measured.n_relevant as recall,
    measured.n_ranks / measured.k as precision,
    case when measured.n_ranks > 0 then 1.0 else 0.0 end::double as hit,
    coalesce(1 / measured.first_rank, 0) as reciprocal_rank,
    case when measured.unit <> 'span' then measured.ndcg_exponential end as ndcg_exponential,
    case when measured.unit <> 'span' then measured.ndcg_linear end as ndcg_linear,
    case when measured.unit <> 'span' then measured.precisions / measured.n_relevant end as average_precision,
    case when measured.n_seen > 0 then measured.precisions / (measured.n_ranks + 1e-10) end as ragas_context_ap,
    case when measured.n_seen > 0 then measured.n_ranks / measured.n_seen end as id_precision
from measured
