-- view:    span_verdicts
-- answers: was the span kept or lost, and for sure at which place?
-- grain:   one row per scored query and evidence span
-- kept:    in the store
-- column:  query_id                     bigint   queries.query_id
-- column:  evidence_no                  bigint   needed_evidence.evidence_no
-- column:  verdict                      varchar  kept, lost or unobserved; stale or misaligned: kept apart
-- column:  lost_kind                    varchar  lost at one place for sure: the kind of its stage
-- column:  lost_stage                   varchar  its name
-- column:  lost_at                      varchar  in or after
-- column:  between_first                varchar  unobserved, or lost at no certain place: the last place where it surely was
-- column:  between_last                 varchar  the last place where it may have been; null when unobserved
-- column:  sure_order                   bigint   the sure place
-- column:  possible_order               bigint   the possible place
-- column:  end_places                   varchar  lost at one place for sure: its place numbers
-- column:  end_place_no                 integer  the place number when it is one
-- column:  end_rank                     integer  its best rank there
-- column:  end_item                     integer  an item of it there
-- column:  end_score                    double   its score there
-- column:  end_tokens                   integer  its tokens there
-- column:  candidate_coverage           double   surely in what the retrieve runs returned
-- column:  final_coverage               double   surely in the final context
-- column:  candidate_coverage_possible  double   possibly
-- column:  final_coverage_possible      double   possibly
-- reads:   span_ends
with

ends as (

    select
        span_ends.query_id,
        span_ends.evidence_no,
        span_ends.reading,
        span_ends.end_order,
        span_ends.end_places,
        span_ends.end_place_no,
        span_ends.end_rank,
        span_ends.end_item,
        span_ends.end_score,
        span_ends.end_tokens,
        span_ends.lost_kind,
        span_ends.lost_stage,
        span_ends.lost_at,
        span_ends.words,
        span_ends.candidate_coverage,
        span_ends.final_coverage
    from span_ends

),

readings as (

    select
        ends.query_id,
        ends.evidence_no,
        max(case when ends.reading in ('sure', 'both') then ends.end_order end) as sure_order,
        max(case when ends.reading in ('possible', 'both') then ends.end_order end) as possible_order,
        max(case when ends.reading in ('sure', 'both') then ends.end_places end) as end_places,
        max(case when ends.reading in ('possible', 'both') then ends.end_places end) as possible_places,
        max(case when ends.reading in ('sure', 'both') then ends.words end) as sure_words,
        max(case when ends.reading in ('possible', 'both') then ends.words end) as possible_words,
        max(case when ends.reading in ('sure', 'both') then ends.end_place_no end) as end_place_no,
        max(case when ends.reading in ('sure', 'both') then ends.end_rank end) as end_rank,
        max(case when ends.reading in ('sure', 'both') then ends.end_item end) as end_item,
        max(case when ends.reading in ('sure', 'both') then ends.end_score end) as end_score,
        max(case when ends.reading in ('sure', 'both') then ends.end_tokens end) as end_tokens,
        max(case when ends.reading in ('sure', 'both') then ends.lost_kind end) as lost_kind,
        max(case when ends.reading in ('sure', 'both') then ends.lost_stage end) as lost_stage,
        max(case when ends.reading in ('sure', 'both') then ends.lost_at end) as lost_at,
        max(case when ends.reading in ('sure', 'both') then ends.candidate_coverage end) as candidate_coverage,
        max(case when ends.reading in ('sure', 'both') then ends.final_coverage end) as final_coverage,
        max(case when ends.reading in ('possible', 'both') then ends.candidate_coverage end)
            as candidate_coverage_possible,
        max(case when ends.reading in ('possible', 'both') then ends.final_coverage end) as final_coverage_possible
    from ends
    group by ends.query_id, ends.evidence_no

),

judged as (

    select
        readings.query_id,
        readings.evidence_no,
        case
            when readings.sure_order = 1000000000 then 'kept'
            when readings.sure_order = -4 then 'misaligned'
            when readings.sure_order < 0 then 'stale'
            when readings.possible_order = 1000000000 then 'unobserved'
            else 'lost'
        end as verdict,
        readings.sure_order between 0 and 999999999
        and readings.sure_order = readings.possible_order
        and (readings.end_places is not distinct from readings.possible_places) as is_placed,
        readings.lost_kind,
        readings.lost_stage,
        readings.lost_at,
        readings.sure_words,
        readings.possible_words,
        readings.sure_order,
        readings.possible_order,
        readings.end_places,
        readings.end_place_no,
        readings.end_rank,
        readings.end_item,
        readings.end_score,
        readings.end_tokens,
        readings.candidate_coverage,
        readings.final_coverage,
        readings.candidate_coverage_possible,
        readings.final_coverage_possible
    from readings

)

select
    judged.query_id,
    judged.evidence_no,
    judged.verdict,
    case when judged.is_placed then judged.lost_kind end as lost_kind,
    case when judged.is_placed then judged.lost_stage end as lost_stage,
    case when judged.is_placed then judged.lost_at end as lost_at,
    case when judged.verdict in ('lost', 'unobserved') and not judged.is_placed then judged.sure_words end
        as between_first,
    case when judged.verdict = 'lost' and not judged.is_placed then judged.possible_words end as between_last,
    judged.sure_order,
    judged.possible_order,
    case when judged.is_placed then judged.end_places end as end_places,
    case when judged.is_placed then judged.end_place_no end as end_place_no,
    case when judged.is_placed then judged.end_rank end as end_rank,
    case when judged.is_placed then judged.end_item end as end_item,
    case when judged.is_placed then judged.end_score end as end_score,
    case when judged.is_placed then judged.end_tokens end as end_tokens,
    case when judged.sure_order >= 0 then judged.candidate_coverage end as candidate_coverage,
    case when judged.sure_order >= 0 then judged.final_coverage end as final_coverage,
    case when judged.sure_order >= 0 then judged.candidate_coverage_possible end as candidate_coverage_possible,
    case when judged.sure_order >= 0 then judged.final_coverage_possible end as final_coverage_possible
from judged
