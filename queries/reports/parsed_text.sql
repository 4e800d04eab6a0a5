-- report:  parsed_text
-- answers: what did a parser put out?
-- grain:   one row for a captured text whose offsets hold; none for any other
-- param:   text_hash  varchar          texts.text_hash
-- column:  text_hash  varchar  the parsed text
-- column:  text       varchar  as captured
-- reads:   texts
select
    texts.text_hash as text_hash,
    texts.text as text
from texts
where texts.text_hash = $text_hash and texts.is_aligned
order by texts.text_hash
