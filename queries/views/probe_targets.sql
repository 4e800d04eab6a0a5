-- view:    probe_targets
-- answers: which retrieve runs are worth asking again, because nothing proves why they missed the evidence?
-- grain:   one row per retrieve run and evidence span that it missed without proof
-- column:  run                    varchar    label of the service's configuration
-- column:  query_id               bigint     queries.query_id
-- column:  started_at_ns          bigint     start of the query
-- column:  stage_id               bigint     the retrieve run
-- column:  name                   varchar    the user's name for it
-- column:  evidence_id            varchar    evidence.evidence_id
-- column:  mode                   varchar    stages.mode
-- column:  k                      integer    how many it was asked for
-- column:  score_kind             varchar    stages.score_kind
-- column:  is_higher_better       boolean    direction of the score
-- column:  index_name             varchar    where it searched
-- column:  index_version          varchar    state of the index then, as declared
-- column:  filter                 varchar    JSON of the filter it used
-- column:  query_text             varchar    what it was asked; null when that was not captured
-- column:  query_hash             varchar    hash of it
-- column:  question               varchar    the question as asked, or as labelled; null when neither is known
-- column:  question_hash          varchar    hash of the question as asked
-- column:  is_original_searched   boolean    the same retriever was also asked the question as it is: no drift is possible
-- column:  chunk_ids              varchar[]  ids of the chunks that hold the span; null when none is known
-- reads:   span_reasons, needed_evidence, query_scope, queries, questions, retrieve_runs, stages, item_covers, items
with

unproved as materialized (

    select distinct
        span_reasons.query_id,
        span_reasons.evidence_no,
        span_reasons.lost_kind,
        span_reasons.sure_order,
        span_reasons.stage_id
    from span_reasons
    where span_reasons.verdict = 'lost' and span_reasons.reason = 'unprobed'

),

-- Where the layers before the query are not recorded, an answer tells at least that the index has it.
missed as materialized (

    select
        unproved.query_id,
        unproved.evidence_no,
        retrieve_runs.stage_id
    from unproved
    inner join retrieve_runs on unproved.query_id = retrieve_runs.query_id
    where
        (unproved.sure_order = 4 and unproved.stage_id = retrieve_runs.stage_id)
        or (unproved.sure_order < 4 and unproved.lost_kind is null)

),

holders as (

    select
        item_covers.evidence_no,
        list(distinct items.chunk_id order by items.chunk_id) as chunk_ids
    from item_covers
    inner join items on item_covers.item = items.item
    where
        item_covers.role <> 'possible'
        and item_covers.evidence_no in (select missed.evidence_no from missed)
        and items.chunk_id is not null
        and coalesce(items.id_source, 'native') in ('native', 'metadata', 'extract')
    group by item_covers.evidence_no

),

asked as (

    select distinct
        stages.query_id,
        stages.name,
        stages.query_hash
    from stages
    where
        stages.kind = 'retrieve' and stages.probe is null and stages.query_id in (select missed.query_id from missed)

)

select
    queries.run,
    missed.query_id,
    queries.started_at_ns,
    missed.stage_id,
    coalesce(stages.name, stages.kind) as name,
    needed_evidence.evidence_id,
    stages.mode,
    stages.k,
    stages.score_kind,
    stages.is_higher_better,
    stages.index_name,
    stages.index_version,
    stages.filter,
    stages.query_text,
    stages.query_hash,
    coalesce(queries.question, questions.question) as question,
    queries.question_hash,
    asked.query_id is not null as is_original_searched,
    holders.chunk_ids
from missed
inner join stages on missed.stage_id = stages.stage_id
inner join queries on missed.query_id = queries.query_id
inner join needed_evidence on missed.evidence_no = needed_evidence.evidence_no
inner join query_scope on missed.query_id = query_scope.query_id
left join questions on query_scope.question_id = questions.question_id
left join asked
    on
        missed.query_id = asked.query_id
        and stages.name is not distinct from asked.name
        and queries.question_hash = asked.query_hash
left join holders on missed.evidence_no = holders.evidence_no
