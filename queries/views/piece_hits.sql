-- view:    piece_hits
-- answers: in which lists of a query does which item hold a piece of its evidence?
-- grain:   one row per list, rank and piece that the item there covers
-- kept:    during a refresh
-- column:  query_id      bigint   queries.query_id
-- column:  list_id       bigint   lists.list_id
-- column:  rank          integer  rank of the item
-- column:  item          integer  items.item
-- column:  score         double   its score there
-- column:  tokens        integer  its tokens there
-- column:  is_candidate  boolean  the list is the output of a retrieve run, wherever it stands
-- column:  piece         bigint   evidence_cuts.piece
-- column:  role          varchar  evidence_cuts.role
-- column:  is_untimed    boolean  no clock tells what was there when the query began
-- reads:   piece_entries, lists, wanted_pieces, retrieve_runs
with

-- Each join kept by itself: in one step DuckDB first multiplies the pieces by all lists of their query.
matched_in_queries as materialized (

    select
        lists.query_id,
        piece_entries.list_id,
        case when lists.role = 'out' then lists.stage_id end as source_id,
        piece_entries.rank,
        piece_entries.item,
        piece_entries.score,
        piece_entries.tokens
    from piece_entries
    inner join lists on piece_entries.list_id = lists.list_id
    where lists.query_id is not null

)

select
    matched_in_queries.query_id,
    matched_in_queries.list_id,
    matched_in_queries.rank,
    matched_in_queries.item,
    matched_in_queries.score,
    matched_in_queries.tokens,
    retrieve_runs.stage_id is not null as is_candidate,
    wanted_pieces.piece,
    wanted_pieces.role,
    wanted_pieces.is_untimed
from matched_in_queries
inner join wanted_pieces
    on matched_in_queries.query_id = wanted_pieces.query_id and matched_in_queries.item = wanted_pieces.item
left join retrieve_runs on matched_in_queries.source_id = retrieve_runs.stage_id
