-- view:    span_ends
-- answers: from which place on is enough of the span gone, for sure and possibly?
-- grain:   one row per scored query, evidence span and reading; labels that cannot be judged included
-- kept:    during a refresh
-- column:  query_id            bigint   queries.query_id
-- column:  evidence_no         bigint   needed_evidence.evidence_no
-- column:  reading             varchar  sure and possible, or both where these are the same
-- column:  end_order           bigint   the latest place from which on its pieces make up min_coverage; negative as in piece_ends
-- column:  end_places          varchar  the places of the or as numbers, in order; null for layers and kept spans
-- column:  end_place_no        integer  the place when it is one
-- column:  end_rank            integer  best rank there of what ended there
-- column:  end_item            integer  an item of it there
-- column:  end_score           double   its score there
-- column:  end_tokens          integer  its tokens there
-- column:  lost_kind           varchar  kinds of the stages there, joined by or
-- column:  lost_stage          varchar  names of the stages there, joined by or
-- column:  lost_at             varchar  in, after, or both
-- column:  words               varchar  the place in words
-- column:  candidate_coverage  double   share of the span in what the retrieve runs returned
-- column:  final_coverage      double   share of the span in the final context
-- reads:   piece_ends, place_names, retrieve_runs, queries, setting_values, stages
with

-- Pieces that end alike count together.
ends as materialized (

    select
        piece_ends.query_id,
        piece_ends.evidence_no,
        piece_ends.total,
        piece_ends.reading,
        piece_ends.end_order,
        piece_ends.end_place_no,
        piece_ends.is_first,
        piece_ends.is_candidate,
        piece_ends.is_final,
        sum(piece_ends.weight) as weight,
        min(piece_ends.end_rank) as end_rank,
        max(piece_ends.end_item) as end_item,
        max(piece_ends.end_score) as end_score,
        max(piece_ends.end_tokens) as end_tokens
    from piece_ends
    where piece_ends.weight > 0
    group by
        piece_ends.query_id, piece_ends.evidence_no, piece_ends.total, piece_ends.reading, piece_ends.end_order,
        piece_ends.end_place_no, piece_ends.is_first, piece_ends.is_candidate, piece_ends.is_final

),

running as (

    select
        ends.query_id,
        ends.evidence_no,
        ends.reading,
        ends.total,
        ends.end_order,
        ends.weight,
        ends.is_candidate,
        ends.is_final,
        sum(ends.weight) over (
            partition by ends.query_id, ends.evidence_no, ends.reading order by ends.end_order desc
            range between unbounded preceding and current row
        ) as weight_from_here
    from ends
    where ends.is_first and ends.weight < ends.total

),

decided as materialized (

    select
        running.query_id,
        running.evidence_no,
        running.reading,
        -- A billionth below the setting: 0.1 + 0.2 must reach 0.3.
        max(case
            when running.weight_from_here >= (setting_values.min_coverage - 1e-9) * running.total then running.end_order
        end) as end_order,
        cast(sum(case when running.is_candidate then running.weight else 0 end) as double)
        / nullif(max(running.total), 0) as candidate_coverage,
        cast(sum(case when running.is_final then running.weight else 0 end) as double)
        / nullif(max(running.total), 0) as final_coverage
    from running
    cross join setting_values
    group by running.query_id, running.evidence_no, running.reading

    union all

    -- A span of one piece ends where the piece does.
    select
        ends.query_id,
        ends.evidence_no,
        ends.reading,
        ends.end_order,
        cast(case when ends.is_candidate then 1 else 0 end as double) as candidate_coverage,
        cast(case when ends.is_final then 1 else 0 end as double) as final_coverage
    from ends
    where ends.is_first and ends.weight = ends.total

),

-- Pieces that end at the same place share their or.
either as materialized (

    select
        decided.query_id,
        decided.evidence_no,
        decided.reading,
        min(ends.end_place_no) as first_no,
        max(ends.end_place_no) as last_no,
        min(ends.end_rank) as end_rank,
        max(ends.end_item) as end_item,
        max(ends.end_score) as end_score,
        max(ends.end_tokens) as end_tokens
    from decided
    inner join ends
        on
            decided.query_id = ends.query_id
            and decided.evidence_no = ends.evidence_no
            and decided.reading = ends.reading
            and decided.end_order = ends.end_order
    where ends.end_place_no is not null
    group by decided.query_id, decided.evidence_no, decided.reading

),

several as (

    select distinct
        either.query_id,
        either.evidence_no,
        either.reading,
        either.end_rank,
        either.end_item,
        either.end_score,
        either.end_tokens,
        ends.end_place_no
    from either
    inner join ends
        on
            either.query_id = ends.query_id
            and either.evidence_no = ends.evidence_no
            and either.reading = ends.reading
    inner join decided
        on
            either.query_id = decided.query_id
            and either.evidence_no = decided.evidence_no
            and either.reading = decided.reading
            and ends.end_order = decided.end_order
    where either.first_no < either.last_no and ends.end_place_no is not null

),

named as (

    select
        either.query_id,
        either.evidence_no,
        either.reading,
        either.end_rank,
        either.end_item,
        either.end_score,
        either.end_tokens,
        either.first_no as end_place_no,
        cast(either.first_no as varchar) as end_places,
        place_names.lost_kind,
        place_names.lost_stage,
        place_names.lost_at,
        place_names.words
    from either
    inner join place_names on either.query_id = place_names.query_id and either.first_no = place_names.place_no
    where either.first_no = either.last_no

    union all

    select
        several.query_id,
        several.evidence_no,
        several.reading,
        several.end_rank,
        several.end_item,
        several.end_score,
        several.end_tokens,
        cast(null as integer) as end_place_no,
        string_agg(cast(several.end_place_no as varchar), ' ' order by several.end_place_no) as end_places,
        string_agg(distinct place_names.lost_kind, ' or ' order by place_names.lost_kind) as lost_kind,
        string_agg(distinct place_names.lost_stage, ' or ' order by place_names.lost_stage) as lost_stage,
        string_agg(distinct place_names.lost_at, ' or ' order by place_names.lost_at desc) as lost_at,
        string_agg(distinct place_names.words, ' or ' order by place_names.words) as words
    from several
    inner join place_names on several.query_id = place_names.query_id and several.end_place_no = place_names.place_no
    group by
        several.query_id, several.evidence_no, several.reading, several.end_rank, several.end_item, several.end_score,
        several.end_tokens

),

-- Only queries with a span that no retrieve run returned need the names of these runs.
unretrieved as materialized (

    select distinct decided.query_id
    from decided
    where decided.end_order = 4

),

searched as (

    select
        unretrieved.query_id,
        string_agg(distinct retrieve_runs.name, ' or ' order by retrieve_runs.name) as names
    from unretrieved
    inner join retrieve_runs on unretrieved.query_id = retrieve_runs.query_id
    group by unretrieved.query_id

),

unsearched as materialized (

    select
        unretrieved.query_id,
        queries.run
    from unretrieved
    inner join queries on unretrieved.query_id = queries.query_id
    left join searched on unretrieved.query_id = searched.query_id
    where searched.query_id is null

),

-- What a query that skipped retrieval would have run.
usual as (

    select
        queries.run,
        string_agg(distinct retrieve_runs.name, ' or ' order by retrieve_runs.name) as names
    from queries
    inner join retrieve_runs on queries.query_id = retrieve_runs.query_id
    where queries.run in (select unsearched.run from unsearched)
    group by queries.run

),

retrieve_names as (

    select
        searched.query_id,
        searched.names
    from searched

    union all

    select
        unsearched.query_id,
        usual.names
    from unsearched
    inner join usual on unsearched.run = usual.run

),

-- What the user calls the steps of the ingest side.
ingest_names as (

    select
        stages.kind,
        string_agg(distinct stages.name, ' or ' order by stages.name) as names
    from stages
    where stages.kind in ('ingest', 'parse', 'chunk', 'index')
    group by stages.kind

)

select
    decided.query_id,
    decided.evidence_no,
    decided.reading,
    decided.end_order,
    named.end_places,
    named.end_place_no,
    named.end_rank,
    named.end_item,
    named.end_score,
    named.end_tokens,
    case decided.end_order
        when 0 then 'ingest'
        when 1 then 'parse'
        when 2 then 'chunk'
        when 3 then 'index'
        when 4 then 'retrieve'
        when 5 then 'retrieve'
        else named.lost_kind
    end as lost_kind,
    case decided.end_order
        when 0 then coalesce(ingest_names.names, 'ingest')
        when 1 then coalesce(ingest_names.names, 'parse')
        when 2 then coalesce(ingest_names.names, 'chunk')
        when 3 then coalesce(ingest_names.names, 'index')
        when 4 then coalesce(retrieve_names.names, 'retrieve')
        when 5 then 'retrieve'
        else named.lost_stage
    end as lost_stage,
    case
        when decided.end_order between 0 and 4 then 'in' when decided.end_order = 5 then 'after' else named.lost_at
    end as lost_at,
    case decided.end_order
        when 0 then 'ingest'
        when 1 then 'parse'
        when 2 then 'chunk'
        when 3 then 'index'
        when 4 then 'in ' || coalesce(retrieve_names.names, 'retrieve')
        when 5 then 'after retrieve'
        when 1000000000 then 'final context'
        else named.words
    end as words,
    decided.candidate_coverage,
    decided.final_coverage
from decided
left join named
    on
        decided.query_id = named.query_id
        and decided.evidence_no = named.evidence_no
        and decided.reading = named.reading
left join retrieve_names on decided.query_id = retrieve_names.query_id
left join ingest_names
    on
        case decided.end_order when 0 then 'ingest' when 1 then 'parse' when 2 then 'chunk' when 3 then 'index' end
        = ingest_names.kind
