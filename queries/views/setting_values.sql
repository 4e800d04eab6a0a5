-- view:    setting_values
-- answers: with which settings are verdicts made?
-- grain:   one row
-- column:  min_coverage   double  share of an evidence span's counting characters that must be there
-- column:  clock_skew_ns  bigint  instants of two hosts closer than this have no known order
-- reads:   settings
select
    coalesce(max(settings.value) filter (where settings.name = 'min_coverage'), 1.0) as min_coverage,
    cast(coalesce(max(settings.value) filter (where settings.name = 'clock_skew_ms'), 1000.0) * 1000000 as bigint)
        as clock_skew_ns
from settings
