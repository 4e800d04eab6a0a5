-- view:    probe_findings
-- answers: where did each probe find what the retrieve runs lost?
-- grain:   one row per probe run that counts and evidence span that was lost at the retrieve runs
-- kept:    during a refresh
-- column:  stage_id         bigint   the probe's own stage run
-- column:  probed_stage_id  bigint   the retrieve run that was asked again
-- column:  query_id         bigint   queries.query_id
-- column:  evidence_no      bigint   needed_evidence.evidence_no
-- column:  probe            varchar  stages.probe
-- column:  is_exact         boolean  every chunk was looked at
-- column:  depth            integer  how many were asked for
-- column:  rank             integer  rank by which all that was lost is there: that of its last piece; null when not all was found
-- column:  score            double   its score
-- column:  is_absent        boolean  asked for by its id, and not there
-- reads:   probe_runs, piece_ends, evidence_cuts, lists, candidates
with

probes as materialized (

    select
        probe_runs.stage_id,
        probe_runs.probed_stage_id,
        probe_runs.query_id,
        probe_runs.probe,
        probe_runs.is_exact,
        probe_runs.depth
    from probe_runs
    where probe_runs.void is null and probe_runs.probe <> 'again'

),

lost_pieces as materialized (

    select distinct
        piece_ends.query_id,
        piece_ends.evidence_no,
        piece_ends.piece
    from piece_ends
    where
        piece_ends.end_order = 4
        and piece_ends.reading in ('sure', 'both')
        and piece_ends.weight > 0
        and piece_ends.query_id in (select probes.query_id from probes)

),

holders as materialized (

    select distinct
        lost_pieces.query_id,
        lost_pieces.evidence_no,
        lost_pieces.piece,
        evidence_cuts.item
    from lost_pieces
    inner join evidence_cuts on lost_pieces.piece = evidence_cuts.piece
    where evidence_cuts.item is not null and evidence_cuts.role <> 'possible'

),

rows_found as (

    select
        lists.stage_id,
        lists.role,
        candidates.item,
        candidates.rank,
        candidates.score
    from probes
    inner join lists on probes.stage_id = lists.stage_id
    inner join candidates on lists.list_id = candidates.list_id
    where lists.role in ('out', 'dropped')

),

by_piece as (

    select
        probes.stage_id,
        holders.evidence_no,
        holders.piece,
        min(rows_found.rank) filter (where rows_found.role = 'out') as rank,
        arg_min(rows_found.score, rows_found.rank) filter (where rows_found.role = 'out') as score,
        max(case when rows_found.role = 'dropped' then 1 else 0 end) as is_absent
    from probes
    inner join holders on probes.query_id = holders.query_id
    left join rows_found on probes.stage_id = rows_found.stage_id and holders.item = rows_found.item
    group by probes.stage_id, holders.evidence_no, holders.piece

),

by_span as (

    select
        by_piece.stage_id,
        by_piece.evidence_no,
        count(*) = count(by_piece.rank) as is_found,
        max(by_piece.rank) as rank,
        arg_max(by_piece.score, by_piece.rank) as score,
        max(case when by_piece.rank is null then by_piece.is_absent else 0 end) = 1 as is_absent
    from by_piece
    group by by_piece.stage_id, by_piece.evidence_no

)

select
    by_span.stage_id,
    probes.probed_stage_id,
    probes.query_id,
    by_span.evidence_no,
    probes.probe,
    probes.is_exact,
    probes.depth,
    case when by_span.is_found then by_span.rank end as rank,
    case when by_span.is_found then by_span.score end as score,
    by_span.is_absent
from by_span
inner join probes on by_span.stage_id = probes.stage_id
