-- view:    rank_cutoffs
-- answers: at which depths are ranked lists measured?
-- grain:   one row per depth
-- column:  k  bigint  how many of a list's first candidates count
select cast(depths.k as bigint) as k
from (values (1), (3), (5), (10), (20), (50), (100)) as depths (k)
