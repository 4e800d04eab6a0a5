-- view:    placed_losses
-- answers: which spans are lost at a place that can be named, and where were they surely last?
-- grain:   one row per scored query and evidence span that is lost, with a kind of stage to name
-- column:  query_id      bigint   queries.query_id
-- column:  evidence_no   bigint   needed_evidence.evidence_no
-- column:  sure_order    bigint   span_verdicts.sure_order
-- column:  end_places    varchar  span_verdicts.end_places
-- column:  end_place_no  integer  span_verdicts.end_place_no
-- column:  end_rank      integer  span_verdicts.end_rank
-- column:  end_item      integer  span_verdicts.end_item
-- column:  end_score     double   span_verdicts.end_score
-- column:  end_tokens    integer  span_verdicts.end_tokens
-- reads:   span_verdicts
select distinct
    span_verdicts.query_id,
    span_verdicts.evidence_no,
    span_verdicts.sure_order,
    span_verdicts.end_places,
    span_verdicts.end_place_no,
    span_verdicts.end_rank,
    span_verdicts.end_item,
    span_verdicts.end_score,
    span_verdicts.end_tokens
from span_verdicts
where span_verdicts.verdict = 'lost' and span_verdicts.lost_kind is not null
