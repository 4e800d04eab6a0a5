-- report:  example
-- answers: which question shows best what goes wrong most often?
-- grain:   one row per run with a loss
-- param:   run          varchar = null  a run's label; null = every run
-- column:  run          varchar  label of the service's configuration
-- column:  question_id  varchar  the labelled question
-- column:  query_id     bigint   its newest query
-- column:  lost_stage   varchar  the stage at which most spans of the run fell; null = no place is certain
-- reads:   question_loss, stage_loss
with

places as (

    select
        stage_loss.run,
        stage_loss.lost_stage,
        row_number() over (
            partition by stage_loss.run
            order by stage_loss.lost_stage is null, count(*) desc, stage_loss.lost_stage
        ) as place
    from stage_loss
    where stage_loss.verdict = 'lost'
    group by stage_loss.run, stage_loss.lost_stage

),

questions as (

    select
        question_loss.run,
        question_loss.question_id,
        max(question_loss.query_id) as query_id,
        min(places.place) as place,
        arg_min(places.lost_stage, places.place) as lost_stage
    from question_loss
    inner join places
        on
            question_loss.run is not distinct from places.run
            and question_loss.lost_stage is not distinct from places.lost_stage
    where question_loss.verdict = 'lost'
    group by question_loss.run, question_loss.question_id

),

ranked as (

    select
        questions.run,
        questions.question_id,
        questions.query_id,
        questions.lost_stage,
        row_number() over (partition by questions.run order by questions.place, questions.question_id) as position
    from questions

)

select
    ranked.run as run,
    ranked.question_id as question_id,
    ranked.query_id as query_id,
    ranked.lost_stage as lost_stage
from ranked
where ranked.position = 1 and (cast($run as varchar) is null or ranked.run = cast($run as varchar))
order by ranked.run
