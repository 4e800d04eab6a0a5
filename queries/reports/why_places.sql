-- report:  why_places
-- answers: where did each piece of evidence of one query stand, place by place, and where did it end?
-- grain:   one row per query, evidence span and place of the query: layers, stage runs in flow order, the final context
-- param:   query_id           bigint = null  queries.query_id; null = every query
-- param:   run                varchar = null  a run's label; null = every run
-- column:  query_id           bigint   queries.query_id
-- column:  evidence_id        varchar  evidence.evidence_id
-- column:  line_no            bigint   1-based, in flow order
-- column:  kind               varchar  source, text, chunks, index; a stage's kind; final context
-- column:  stage              varchar  the user's name for the stage; null for layers and the context
-- column:  status             varchar  ok, error or cancelled; null for layers and the context
-- column:  is_on_path         boolean  on a recorded way to the final context
-- column:  n_in               bigint   candidates it took; null when no list of it is recorded
-- column:  n_out              bigint   candidates it let through; of the context: that it holds
-- column:  rank_in            integer  best rank of an item that holds evidence, among what it took
-- column:  rank_out           integer  the same among what it let through; else among what it only looked at
-- column:  is_kept            boolean  false: rank_out is among what it looked at and did not let through
-- column:  score              double   of that item at rank_out, as the stage gave it
-- column:  chunk_id           varchar  that item's chunk
-- column:  coverage_in        double   share of the span surely in what it took
-- column:  coverage           double   share surely in what it let through, in the layer, in the context
-- column:  coverage_possible  double   share that may be there
-- column:  is_complete        boolean  false: something of its lists could not be recorded
-- column:  lost_here          varchar  the line where the span ends: in (this stage or layer lost it) or after (it was
--                                      lost behind this stage); null elsewhere
-- reads:   evidence_at_place, span_verdicts, needed_evidence, item_covers, places, place_lists, stages,
--          lists, candidate_list, queries
with

stands as materialized (

    select
        evidence_at_place.query_id,
        evidence_at_place.evidence_id,
        evidence_at_place.place_order,
        evidence_at_place.place_no,
        evidence_at_place.kind,
        evidence_at_place.side,
        evidence_at_place.is_on_path,
        evidence_at_place.rank,
        evidence_at_place.score,
        evidence_at_place.coverage,
        evidence_at_place.coverage_possible
    from evidence_at_place
    where cast($query_id as bigint) is null or evidence_at_place.query_id = cast($query_id as bigint)

),

ends as materialized (

    select
        span_verdicts.query_id,
        needed_evidence.evidence_id,
        needed_evidence.evidence_no,
        case
            when span_verdicts.verdict = 'lost' and span_verdicts.lost_kind is not null then span_verdicts.sure_order
        end
            as end_order,
        string_split(span_verdicts.end_places, ' ') as end_nos
    from span_verdicts
    inner join needed_evidence on span_verdicts.evidence_no = needed_evidence.evidence_no
    where cast($query_id as bigint) is null or span_verdicts.query_id = cast($query_id as bigint)

),

own_places as materialized (

    select
        places.query_id,
        places.place_no,
        places.stage_id
    from places
    where cast($query_id as bigint) is null or places.query_id = cast($query_id as bigint)

),

layers as (

    select
        1 as place_order,
        'source' as kind
    union all
    select
        2 as place_order,
        'text' as kind
    union all
    select
        3 as place_order,
        'chunks' as kind
    union all
    select
        4 as place_order,
        'index' as kind

),

sizes as (

    select
        lists.stage_id,
        cast(sum(lists.n_candidates) filter (where lists.role = 'in') as bigint) as n_in,
        cast(sum(lists.n_candidates) filter (where lists.role = 'out') as bigint) as n_out,
        bool_and(coalesce(lists.is_complete, true)) as is_complete
    from lists
    where cast($query_id as bigint) is null or lists.query_id = cast($query_id as bigint)
    group by lists.stage_id

),

-- What a stage gave to items that hold evidence, let through or not.
given as (

    select
        ends.query_id,
        ends.evidence_id,
        candidate_list.stage_id,
        min(candidate_list.rank) as rank,
        arg_min(candidate_list.score, candidate_list.rank) as score,
        arg_min(candidate_list.chunk_id, candidate_list.rank) as chunk_id
    from candidate_list
    inner join item_covers on candidate_list.item = item_covers.item
    inner join ends on candidate_list.query_id = ends.query_id and item_covers.evidence_no = ends.evidence_no
    where
        (cast($query_id as bigint) is null or candidate_list.query_id = cast($query_id as bigint))
        and (candidate_list.role in ('considered', 'dropped') or candidate_list.is_kept = false)
    group by ends.query_id, ends.evidence_id, candidate_list.stage_id

),

put_out as (

    select
        candidate_list.stage_id,
        candidate_list.rank,
        min(candidate_list.chunk_id) as chunk_id
    from candidate_list
    where
        candidate_list.role = 'out'
        and (cast($query_id as bigint) is null or candidate_list.query_id = cast($query_id as bigint))
    group by candidate_list.stage_id, candidate_list.rank

),

-- One line for a stage run: what it took and what it let through.
runs as (

    select
        stands.query_id,
        stands.evidence_id,
        own_places.stage_id,
        min(stands.place_order) as place_order,
        bool_or(stands.is_on_path) as is_on_path,
        max(stands.place_no) filter (where stands.side = 'in') as in_no,
        max(stands.place_no) filter (where stands.side = 'out') as out_no,
        max(stands.rank) filter (where stands.side = 'in') as rank_in,
        max(stands.rank) filter (where stands.side = 'out') as rank_out,
        max(stands.score) filter (where stands.side = 'out') as score,
        max(stands.coverage) filter (where stands.side = 'in') as coverage_in,
        max(stands.coverage) filter (where stands.side = 'out') as coverage,
        max(stands.coverage_possible) filter (where stands.side = 'out') as coverage_possible
    from stands
    inner join own_places on stands.query_id = own_places.query_id and stands.place_no = own_places.place_no
    where stands.side in ('in', 'out')
    group by stands.query_id, stands.evidence_id, own_places.stage_id

),

run_lines as (

    select
        runs.query_id,
        runs.evidence_id,
        runs.place_order,
        stages.start_no,
        stages.kind,
        coalesce(stages.name, stages.kind) as stage,
        stages.status,
        runs.is_on_path,
        sizes.n_in,
        sizes.n_out,
        runs.rank_in,
        coalesce(runs.rank_out, given.rank) as rank_out,
        case when coalesce(runs.rank_out, given.rank) is not null then runs.rank_out is not null end as is_kept,
        case when runs.rank_out is null then given.score else runs.score end as score,
        case when runs.rank_out is null then given.chunk_id else put_out.chunk_id end as chunk_id,
        runs.coverage_in,
        runs.coverage,
        runs.coverage_possible,
        sizes.is_complete,
        case
            when ends.end_order = 4 and stages.kind = 'retrieve' then 'in'
            when list_contains(ends.end_nos, cast(runs.in_no as varchar)) then 'in'
            when list_contains(ends.end_nos, cast(runs.out_no as varchar)) then 'after'
        end as lost_here
    from runs
    inner join stages on runs.stage_id = stages.stage_id
    inner join ends on runs.query_id = ends.query_id and runs.evidence_id = ends.evidence_id
    left join sizes on runs.stage_id = sizes.stage_id
    left join given
        on
            runs.query_id = given.query_id
            and runs.stage_id = given.stage_id
            and runs.evidence_id = given.evidence_id
    left join put_out on runs.stage_id = put_out.stage_id and runs.rank_out = put_out.rank

),

layer_lines as (

    select
        ends.query_id,
        ends.evidence_id,
        layers.place_order,
        layers.kind,
        coalesce(stands.coverage, 0) as coverage,
        coalesce(stands.coverage_possible, 0) as coverage_possible,
        case when layers.place_order = ends.end_order + 1 then 'in' end as lost_here
    from ends
    cross join layers
    left join stands
        on
            ends.query_id = stands.query_id
            and ends.evidence_id = stands.evidence_id
            and layers.kind = stands.kind
            and stands.side = 'layer'

),

context_size as (

    select
        places.query_id,
        cast(sum(lists.n_candidates) as bigint) as n_out,
        bool_and(coalesce(lists.is_complete, true)) as is_complete
    from places
    inner join place_lists on places.query_id = place_lists.query_id and places.place_no = place_lists.place_no
    inner join lists on place_lists.list_id = lists.list_id
    where
        places.side = 'context'
        and (cast($query_id as bigint) is null or places.query_id = cast($query_id as bigint))
    group by places.query_id

),

lines as (

    select
        layer_lines.query_id,
        layer_lines.evidence_id,
        layer_lines.place_order,
        0 as start_no,
        layer_lines.kind,
        cast(null as varchar) as stage,
        cast(null as varchar) as status,
        cast(null as boolean) as is_on_path,
        cast(null as bigint) as n_in,
        cast(null as bigint) as n_out,
        cast(null as integer) as rank_in,
        cast(null as integer) as rank_out,
        cast(null as boolean) as is_kept,
        cast(null as double) as score,
        cast(null as varchar) as chunk_id,
        cast(null as double) as coverage_in,
        layer_lines.coverage,
        layer_lines.coverage_possible,
        cast(null as boolean) as is_complete,
        layer_lines.lost_here
    from layer_lines
    union all
    select
        run_lines.query_id,
        run_lines.evidence_id,
        run_lines.place_order,
        run_lines.start_no,
        run_lines.kind,
        run_lines.stage,
        run_lines.status,
        run_lines.is_on_path,
        run_lines.n_in,
        run_lines.n_out,
        run_lines.rank_in,
        run_lines.rank_out,
        run_lines.is_kept,
        run_lines.score,
        run_lines.chunk_id,
        run_lines.coverage_in,
        run_lines.coverage,
        run_lines.coverage_possible,
        run_lines.is_complete,
        run_lines.lost_here
    from run_lines
    union all
    select
        stands.query_id,
        stands.evidence_id,
        stands.place_order,
        0 as start_no,
        'final context' as kind,
        null as stage,
        null as status,
        true as is_on_path,
        null as n_in,
        context_size.n_out,
        null as rank_in,
        stands.rank as rank_out,
        null as is_kept,
        null as score,
        null as chunk_id,
        null as coverage_in,
        stands.coverage,
        stands.coverage_possible,
        context_size.is_complete,
        null as lost_here
    from stands
    left join context_size on stands.query_id = context_size.query_id
    where stands.side = 'context'

)

select
    lines.query_id as query_id,
    lines.evidence_id as evidence_id,
    row_number() over (
        partition by lines.query_id, lines.evidence_id order by lines.place_order, lines.start_no, lines.stage
    ) as line_no,
    lines.kind as kind,
    lines.stage as stage,
    lines.status as status,
    lines.is_on_path as is_on_path,
    lines.n_in as n_in,
    lines.n_out as n_out,
    lines.rank_in as rank_in,
    lines.rank_out as rank_out,
    lines.is_kept as is_kept,
    lines.score as score,
    lines.chunk_id as chunk_id,
    lines.coverage_in as coverage_in,
    lines.coverage as coverage,
    lines.coverage_possible as coverage_possible,
    lines.is_complete as is_complete,
    lines.lost_here as lost_here
from lines
where
    cast($run as varchar) is null
    or lines.query_id in (
        select queries.query_id
        from queries
        where queries.run = cast($run as varchar)
    )
order by lines.query_id, lines.evidence_id, line_no
