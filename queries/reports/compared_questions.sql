-- report:  compared_questions
-- answers: how did each question fare in two runs?
-- grain:   one row per labelled question that was asked in one of the two runs; of a question that was asked several times the mean
-- param:   a            varchar  label of the first run
-- param:   b            varchar  label of the second run
-- column:  question_id  varchar  the labelled question
-- column:  kind         varchar  the question's kind
-- column:  tags         varchar[]  the question's tags
-- column:  group_id     varchar  questions that belong together; its own id when there is no group
-- column:  n_a          bigint   queries of it in a whose recalls nothing unrecorded could change
-- column:  n_b          bigint   the same in b
-- column:  n_open_a     bigint   scored queries of it in a that are unobserved
-- column:  n_open_b     bigint   the same in b
-- column:  candidate_a  double   mean candidate recall; null when n_a is 0
-- column:  candidate_b  double   the same in b
-- column:  final_a      double   mean final-context recall
-- column:  final_b      double   the same in b
-- column:  complete_a   double   share of its queries with a complete set in the final context
-- column:  complete_b   double   the same in b
-- column:  lost_a       varchar  the stage at which the last of its queries lost what it needed; else kept, unobserved or not judged
-- column:  lost_b       varchar  the same in b
-- column:  ms_a         double   mean duration of a query, milliseconds
-- column:  ms_b         double   the same in b
-- column:  tokens_a     double   mean tokens of the final context; null where none are recorded
-- column:  tokens_b     double   the same in b
-- reads:   query_recall, queries, question_loss, places, place_lists, candidates, questions
with

chosen as (

    select
        query_recall.query_id,
        query_recall.question_id,
        query_recall.run = cast($a as varchar) as is_a,
        query_recall.is_judged,
        query_recall.candidate_recall,
        query_recall.final_context_recall,
        query_recall.final_complete
    from query_recall
    where query_recall.run in (cast($a as varchar), cast($b as varchar))

),

contexts as (

    select
        place_lists.query_id,
        place_lists.list_id
    from place_lists
    inner join places on place_lists.query_id = places.query_id and place_lists.place_no = places.place_no
    inner join chosen on places.query_id = chosen.query_id
    where places.side = 'context'

),

spent as (

    select
        contexts.query_id,
        sum(candidates.tokens) as tokens
    from contexts
    inner join candidates on contexts.list_id = candidates.list_id
    where candidates.is_kept is distinct from false
    group by contexts.query_id

),

fared as (

    select
        chosen.question_id,
        chosen.is_a,
        count(*) filter (where chosen.is_judged) as n,
        count(*) filter (where not chosen.is_judged) as n_open,
        avg(chosen.candidate_recall) filter (where chosen.is_judged) as candidate,
        avg(chosen.final_context_recall) filter (where chosen.is_judged) as final,
        avg(chosen.final_complete) filter (where chosen.is_judged) as complete,
        arg_max(
            case
                when question_loss.verdict = 'lost' then coalesce(question_loss.lost_stage, 'between stages')
                else coalesce(question_loss.verdict, 'not judged')
            end,
            queries.started_at_ns
        ) as lost,
        avg(queries.duration_ns / 1000000) as ms,
        avg(spent.tokens) as tokens
    from chosen
    inner join queries on chosen.query_id = queries.query_id
    left join question_loss on chosen.query_id = question_loss.query_id
    left join spent on chosen.query_id = spent.query_id
    group by chosen.question_id, chosen.is_a

)

select
    fared.question_id as question_id,
    any_value(questions.kind) as kind,
    any_value(questions.tags) as tags,
    coalesce(any_value(questions.group_id), fared.question_id) as group_id,
    cast(coalesce(max(fared.n) filter (where fared.is_a), 0) as bigint) as n_a,
    cast(coalesce(max(fared.n) filter (where not fared.is_a), 0) as bigint) as n_b,
    cast(coalesce(max(fared.n_open) filter (where fared.is_a), 0) as bigint) as n_open_a,
    cast(coalesce(max(fared.n_open) filter (where not fared.is_a), 0) as bigint) as n_open_b,
    max(fared.candidate) filter (where fared.is_a) as candidate_a,
    max(fared.candidate) filter (where not fared.is_a) as candidate_b,
    max(fared.final) filter (where fared.is_a) as final_a,
    max(fared.final) filter (where not fared.is_a) as final_b,
    max(fared.complete) filter (where fared.is_a) as complete_a,
    max(fared.complete) filter (where not fared.is_a) as complete_b,
    max(fared.lost) filter (where fared.is_a) as lost_a,
    max(fared.lost) filter (where not fared.is_a) as lost_b,
    max(fared.ms) filter (where fared.is_a) as ms_a,
    max(fared.ms) filter (where not fared.is_a) as ms_b,
    max(fared.tokens) filter (where fared.is_a) as tokens_a,
    max(fared.tokens) filter (where not fared.is_a) as tokens_b
from fared
inner join questions on fared.question_id = questions.question_id
group by fared.question_id
order by fared.question_id
