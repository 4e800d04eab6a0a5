-- view:    probe_reasons
-- answers: what do the probes of a retrieve run prove of the evidence it did not return?
-- grain:   one row per retrieve run with a probe that counts and evidence span that was lost at the retrieve runs
-- kept:    during a refresh
-- column:  query_id         bigint   queries.query_id
-- column:  evidence_no      bigint   needed_evidence.evidence_no
-- column:  probed_stage_id  bigint   the retrieve run
-- column:  reason           varchar  not_indexed, below_threshold, ann_miss, query_drift, below_k, filtered; null when they prove none
-- column:  probe            varchar  the probe that proves it, else the one to try next
-- column:  rank             integer  rank by the query used, under the same filter; filtered: without it
-- column:  score            double   its score there
-- column:  rank_original    integer  rank by the question as asked
-- column:  k                integer  how many the run lets through: as declared, else as many as it did
-- column:  cause_stage      varchar  query_drift: the rewrite that put the query out, where the record proves it
-- reads:   probe_findings, stages, lists, queries
with

findings as materialized (

    select
        probe_findings.probed_stage_id,
        probe_findings.query_id,
        probe_findings.evidence_no,
        probe_findings.probe,
        probe_findings.is_exact,
        probe_findings.depth,
        probe_findings.rank,
        probe_findings.score,
        probe_findings.is_absent
    from probe_findings

),

by_run as (

    select
        findings.query_id,
        findings.evidence_no,
        findings.probed_stage_id,
        max(case when findings.is_absent and findings.probe = 'by_id' then 1 else 0 end) as is_absent,
        -- By the ids of its own chunks: a label that came later was not asked for.
        count(*) filter (
            where findings.probe = 'by_id' and (findings.is_absent or findings.rank is not null)
        ) as n_by_id,
        count(*) filter (where findings.probe in ('exact', 'deeper')) as n_used,
        min(findings.rank) filter (where findings.probe = 'exact') as rank_exact,
        arg_min(findings.score, findings.rank) filter (where findings.probe = 'exact') as score_exact,
        max(findings.depth) filter (where findings.probe in ('exact', 'deeper') and findings.is_exact) as depth_exact,
        min(findings.rank) filter (where findings.probe = 'deeper') as rank_deeper,
        arg_min(findings.score, findings.rank) filter (where findings.probe = 'deeper') as score_deeper,
        count(*) filter (where findings.probe = 'unfiltered') as n_unfiltered,
        min(findings.rank) filter (where findings.probe = 'unfiltered' and findings.is_exact) as rank_unfiltered,
        arg_min(findings.score, findings.rank) filter (where findings.probe = 'unfiltered' and findings.is_exact)
            as score_unfiltered,
        count(*) filter (where findings.probe = 'original_question') as n_original,
        min(findings.rank) filter (where findings.probe = 'original_question') as rank_original
    from findings
    group by findings.query_id, findings.evidence_no, findings.probed_stage_id

),

-- The same retriever was asked the question as it is too: then no rewrite is to blame.
originals as (

    select distinct
        stages.query_id,
        stages.name
    from stages
    inner join queries on stages.query_id = queries.query_id and stages.query_hash = queries.question_hash
    where
        stages.kind = 'retrieve'
        and stages.probe is null
        and stages.query_id in (select findings.query_id from findings)

),

probed_stages as materialized (

    select
        stages.stage_id,
        stages.query_id,
        stages.start_no,
        stages.mode,
        stages.k,
        stages.threshold,
        coalesce(stages.is_higher_better, coalesce(stages.score_kind, '') <> 'distance') as is_higher_better,
        stages.filter is not null as has_filter,
        stages.query_text,
        stages.query_hash,
        (stages.query_hash is distinct from queries.question_hash) and originals.query_id is null as is_drift_possible
    from stages
    left join queries on stages.query_id = queries.query_id
    left join originals on stages.query_id = originals.query_id and stages.name is not distinct from originals.name
    where stages.stage_id in (select findings.probed_stage_id from findings)

),

sizes as (

    select
        lists.stage_id,
        cast(max(lists.n_candidates) as integer) as n_out
    from lists
    where lists.role = 'out' and lists.stage_id in (select probed_stages.stage_id from probed_stages)
    group by lists.stage_id

),

-- A rewrite of several queries has them as a JSON list: there only the text itself tells.
rewrites as (

    select
        probed_stages.stage_id,
        arg_max(coalesce(stages.name, stages.kind), stages.start_no) as name
    from probed_stages
    inner join stages on probed_stages.query_id = stages.query_id
    where
        stages.kind = 'rewrite'
        and stages.probe is null
        and stages.start_no < probed_stages.start_no
        and (
            stages.query_hash = probed_stages.query_hash
            or (length(probed_stages.query_text) > 0 and strpos(stages.query_text, probed_stages.query_text) > 0)
        )
    group by probed_stages.stage_id

),

weighed as (

    select
        by_run.query_id,
        by_run.evidence_no,
        by_run.probed_stage_id,
        by_run.is_absent,
        by_run.n_by_id,
        by_run.n_used,
        by_run.n_unfiltered,
        by_run.n_original,
        by_run.rank_exact is not null as is_by_exact,
        coalesce(by_run.rank_exact, by_run.rank_deeper) as rank_used,
        case when by_run.rank_exact is not null then by_run.score_exact else by_run.score_deeper end as score_used,
        -- What the filter lets through can only rise when the rest goes.
        case when by_run.rank_unfiltered <= by_run.depth_exact then by_run.rank_unfiltered end as rank_unfiltered,
        by_run.score_unfiltered,
        by_run.rank_original,
        coalesce(probed_stages.k, sizes.n_out) as k,
        probed_stages.mode,
        probed_stages.threshold,
        probed_stages.is_higher_better,
        probed_stages.has_filter,
        probed_stages.is_drift_possible,
        rewrites.name as rewrite
    from by_run
    inner join probed_stages on by_run.probed_stage_id = probed_stages.stage_id
    left join sizes on by_run.probed_stage_id = sizes.stage_id
    left join rewrites on by_run.probed_stage_id = rewrites.stage_id

),

judged as (

    select
        weighed.query_id,
        weighed.evidence_no,
        weighed.probed_stage_id,
        weighed.is_by_exact,
        weighed.rank_used,
        weighed.score_used,
        weighed.rank_unfiltered,
        weighed.score_unfiltered,
        weighed.rank_original,
        weighed.k,
        weighed.mode,
        weighed.has_filter,
        weighed.is_drift_possible,
        weighed.rewrite,
        weighed.n_by_id,
        weighed.n_used,
        weighed.n_unfiltered,
        weighed.n_original,
        case
            when weighed.is_absent = 1 then 'not_indexed'
            when
                weighed.threshold is not null
                and case
                    when weighed.is_higher_better then weighed.score_used < weighed.threshold
                    else weighed.score_used > weighed.threshold
                end then 'below_threshold'
            when weighed.rank_used <= weighed.k then 'ann_miss'
            when weighed.n_used > 0 and weighed.is_drift_possible and weighed.rank_original <= weighed.k
                then 'query_drift'
            when weighed.rank_used > weighed.k then 'below_k'
            when weighed.has_filter and weighed.rank_unfiltered is not null then 'filtered'
        end as reason
    from weighed

)

select
    judged.query_id,
    judged.evidence_no,
    judged.probed_stage_id,
    judged.reason,
    case
        when judged.reason = 'not_indexed' then 'by_id'
        when judged.reason = 'query_drift' then 'original_question'
        when judged.reason = 'filtered' then 'unfiltered'
        when judged.reason is not null then case when judged.is_by_exact then 'exact' else 'deeper' end
        when judged.n_used = 0
            then case when coalesce(judged.mode in ('exact', 'lexical', 'sql'), false) then 'deeper' else 'exact' end
        when judged.has_filter and judged.n_unfiltered = 0 then 'unfiltered'
        when judged.n_by_id = 0 then 'by_id'
        when judged.is_drift_possible and judged.n_original = 0 then 'original_question'
        else 'deeper'
    end as probe,
    case when judged.reason = 'filtered' then judged.rank_unfiltered else judged.rank_used end as rank,
    case when judged.reason = 'filtered' then judged.score_unfiltered else judged.score_used end as score,
    judged.rank_original,
    judged.k,
    case when judged.reason = 'query_drift' then judged.rewrite end as cause_stage
from judged
