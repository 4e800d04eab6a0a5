-- view:    wanted_pieces
-- answers: which items hold, or may hold, a piece of the evidence that a query is scored by?
-- grain:   one row per query, piece and item that covers it
-- column:  query_id       bigint   queries.query_id
-- column:  is_untimed     boolean  no clock tells what was there when the query began
-- column:  started_at_ns  bigint   start of the query
-- column:  host           varchar  host of the process that recorded it
-- column:  piece          bigint   evidence_cuts.piece
-- column:  item           integer  items.item
-- column:  role           varchar  evidence_cuts.role
-- reads:   label_states, evidence_cuts
select
    label_states.query_id,
    label_states.state = 'clock' as is_untimed,
    label_states.started_at_ns,
    label_states.host,
    evidence_cuts.piece,
    evidence_cuts.item,
    evidence_cuts.role
from label_states
inner join evidence_cuts on label_states.evidence_no = evidence_cuts.evidence_no
where evidence_cuts.item is not null and label_states.is_scored
