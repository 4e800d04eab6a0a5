-- view:    loss_spots
-- answers: at which stage runs did a lost span fall?
-- grain:   one row per lost span and place it stood at last; one per retrieve run when it was in the index and none returned it
-- kept:    during a refresh
-- column:  query_id     bigint   queries.query_id
-- column:  evidence_no  bigint   needed_evidence.evidence_no
-- column:  sure_order   bigint   span_verdicts.sure_order
-- column:  end_rank     integer  its best rank at the place
-- column:  end_item     integer  the item that held it there
-- column:  end_score    double   its score there
-- column:  end_tokens   integer  its tokens there
-- column:  stage_id     bigint   stages.stage_id
-- column:  side         varchar  places.side; index for a retrieve run that did not return it
-- column:  is_on_path   boolean  places.is_on_path
-- reads:   placed_losses, places, retrieve_runs
select
    placed_losses.query_id,
    placed_losses.evidence_no,
    placed_losses.sure_order,
    placed_losses.end_rank,
    placed_losses.end_item,
    placed_losses.end_score,
    placed_losses.end_tokens,
    places.stage_id,
    places.side,
    places.is_on_path
from placed_losses
inner join places on placed_losses.query_id = places.query_id and placed_losses.end_place_no = places.place_no

union all

select
    placed_losses.query_id,
    placed_losses.evidence_no,
    placed_losses.sure_order,
    placed_losses.end_rank,
    placed_losses.end_item,
    placed_losses.end_score,
    placed_losses.end_tokens,
    places.stage_id,
    places.side,
    places.is_on_path
from placed_losses
inner join places on placed_losses.query_id = places.query_id
where
    placed_losses.end_places is not null
    and placed_losses.end_place_no is null
    and list_contains(string_split(placed_losses.end_places, ' '), cast(places.place_no as varchar))

union all

select
    placed_losses.query_id,
    placed_losses.evidence_no,
    placed_losses.sure_order,
    cast(null as integer) as end_rank,
    cast(null as integer) as end_item,
    cast(null as double) as end_score,
    cast(null as integer) as end_tokens,
    retrieve_runs.stage_id,
    'index' as side,
    true as is_on_path
from placed_losses
inner join retrieve_runs on placed_losses.query_id = retrieve_runs.query_id
where placed_losses.sure_order = 4
