"""What the verdicts cost: whole views over a generated store, as ratios to one hash semi join on string ids in the same run.

    python -m benchmarks.verdicts [--scale 1] [--threads 2] [--memory 1GiB] [--store FILE]

The store is made in SQL: the five stages of DESIGN 8 (100 + 100 retrieved, 150 fused, 50 reranked, 8 packed), four runs of
the same questions, one or two needs a question, every other one across a chunk border, documents of 20 chunks recorded from
the parse to the index. Some 4 in 100 candidates hold evidence of some question; about half the spans are lost somewhere.
Verdicts are computed when the store changes and read afterwards: both are measured, and what they take of the disk.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

from benchmarks.harness import Options, Row, arguments, shown
from ragtrace.store import database, kept

__all__ = ["build", "rows"]

N_ROWS = 11_000_000
ROWS_PER_QUERY = 408
CHUNKS_PER_DOCUMENT = 20
CHUNK_CHARACTERS = 500
BUDGET = 2.0
"""DESIGN 8: stage_loss whole takes at most twice the semi join; so do the other views."""
VIEWS = ("stage_loss", "question_loss", "loss_share", "recall_summary", "stage_recall", "level_recall", "span_verdicts")
SEMI_JOIN = "select count(*) from named where chunk_id in (select chunk_id from gold_ids)"

_BUILD = """
set variable n_queries = {n_queries};
set variable n_questions = {n_questions};
set variable n_documents = {n_documents};
set variable n_items = {n_documents} * {chunks};

insert into processes (process_id, host) values (1, 'one');

insert into items (item, chunk_id, id_source, version, doc_id, text_hash, item_text_hash)
select
    i, format('doc-{{:06d}}-chunk-{{:03d}}', i // {chunks}, i % {chunks}), 'native', 0, format('doc-{{:06d}}', i // {chunks}),
    md5((i // {chunks})::varchar), md5('text' || i)
from range(getvariable('n_items')) as t(i);

insert into item_ranges (item, doc_id, text_hash, start_at, end_at, role)
select i, format('doc-{{:06d}}', i // {chunks}), md5((i // {chunks})::varchar), (i % {chunks}) * {characters},
    (i % {chunks} + 1) * {characters}, 'own'
from range(getvariable('n_items')) as t(i);

insert into documents (ingest_id, doc_id, recorded_at_ns, status, process_id)
select d, format('doc-{{:06d}}', d), 1000, 'ok', 1 from range(getvariable('n_documents')) as t(d);
insert into parses (stage_id, doc_id, text_hash, n_characters, parsed_at_ns, process_id)
select 1000000000 + 3 * d, format('doc-{{:06d}}', d), md5(d::varchar), {chunks} * {characters}, 2000, 1
from range(getvariable('n_documents')) as t(d);
insert into stages (stage_id, ingest_id, kind, name, status, started_at_ns, duration_ns, process_id, is_index_complete)
select 1000000000 + 3 * d + k, d, ['parse', 'chunk', 'index'][k + 1], ['parse', 'split', 'store'][k + 1], 'ok', 2000 + k, 0, 1, k = 2
from range(getvariable('n_documents')) as t(d), range(3) as u(k);
insert into lists (list_id, stage_id, role, n_candidates, is_complete, same_as_list_id)
select 1000000000 + 2 * d, 1000000001 + 3 * d, 'out', {chunks}, true, null from range(getvariable('n_documents')) as t(d)
union all
select 1000000001 + 2 * d, 1000000002 + 3 * d, 'in', {chunks}, true, 1000000000 + 2 * d from range(getvariable('n_documents')) as t(d);

insert into questions (question_id, question, question_hash, kind, is_unanswerable, is_evidence_unknown)
select format('question-{{:06d}}', q), 'q' || q, md5('q' || q), ['plain', 'hop'][q % 2 + 1], false, false
from range(getvariable('n_questions')) as t(q);

-- One or two needs a question, of 200 characters; every other one lies across a chunk border.
create temp table gold as
select
    q, n, hash(q, n) % getvariable('n_documents') as d,
    (hash(q, n, 'at') % ({chunks} - 2) + 1) * {characters} + case when (q + n) % 2 = 0 then -100 else 100 end as start_at
from range(getvariable('n_questions')) as t(q), range(2) as u(n)
where n = 0 or q % 2 = 1;
insert into evidence (evidence_id, question_id, set_no, need, is_need, level, grade, doc_id, start_at, end_at, span_text,
    n_characters, made_on_text_hash, made_on_ns, label_status)
select format('question-{{:06d}}#1.{{}}', q, n), format('question-{{:06d}}', q), 1, n::varchar, true, 'span', 1, format('doc-{{:06d}}', d),
    start_at, start_at + 200, repeat('abcd efgh ', 20), 200, md5(d::varchar), 2000, 'placed'
from gold;
insert into evidence_places (evidence_id, doc_id, text_hash, is_found, start_at, end_at, quality)
select evidence_id, doc_id, made_on_text_hash, true, start_at, end_at, 'exact' from evidence;

insert into queries (query_id, run, run_kind, question_id, status, started_at_ns, process_id)
select q, 'run-' || q % 4, 'actual', format('question-{{:06d}}', q // 4 % getvariable('n_questions')), 'ok', 100000, 1
from range(getvariable('n_queries')) as t(q);
insert into query_flows (query_id, final_how, is_whole, n_places) select query_id, 'only_generate', true, 9 from queries;

create temp table shape as
select * from (values
    (0, 'retrieve', 'dense', 100), (1, 'retrieve', 'bm25', 100), (2, 'fuse', 'rrf', 150), (3, 'rerank', 'rerank', 50),
    (4, 'truncate', 'pack', 8), (5, 'generate', 'llm', 0)) as t(no, kind, name, n);
insert into stages (stage_id, query_id, kind, name, status, start_no, end_no, k)
select query_id * 10 + no, query_id, kind, name, 'ok', no, no, n from queries, shape;
insert into lists (list_id, query_id, stage_id, role, n_candidates, is_complete)
select query_id * 20 + no, query_id, query_id * 10 + no, 'out', n, true from queries, shape where no < 5;
insert into lists (list_id, query_id, stage_id, role, n_candidates, is_complete, same_as_list_id)
select query_id * 20 + 10 + takes, query_id, query_id * 10 + no, 'in', 0, true, query_id * 20 + takes
from queries, (values (2, 0), (2, 1), (3, 2), (4, 3), (5, 4)) as t(no, takes);
insert into edges (query_id, from_list_id, to_list_id, how)
select query_id, same_as_list_id, list_id, 'same' from lists where query_id is not null and same_as_list_id is not null;
insert into places (query_id, place_no, stage_id, side, step, is_on_path, place_order, counts_stands_for, later_nos)
select query_id, place_no, case when no is not null then query_id * 10 + no end, side, step, true,
    case when no is null then 1000000000 else 1000000 + step end, false, later
from queries, (values
    (1, 0, 'out', 2, [3,4,5,6,7,8,9,10]), (2, 1, 'out', 2, [3,4,5,6,7,8,9,10]), (3, 2, 'in', 3, [4,5,6,7,8,9,10]), (4, 2, 'out', 4, [5,6,7,8,9,10]),
    (5, 3, 'in', 5, [6,7,8,9,10]), (6, 3, 'out', 6, [7,8,9,10]), (7, 4, 'in', 7, [8,9,10]), (8, 4, 'out', 8, [9,10]), (9, 5, 'in', 9, [10]),
    (10, null, 'context', null, [])) as t(place_no, no, side, step, later);
insert into place_lists (query_id, place_no, list_id)
select query_id, place_no, query_id * 20 + no
from queries, (values (1, 0), (2, 1), (3, 0), (3, 1), (4, 2), (5, 2), (6, 3), (7, 3), (8, 4), (9, 4), (10, 4)) as t(place_no, no);

-- A pool of 211 items a question, its gold chunks and their neighbours among them; a list takes a stride of the pool.
create temp table pool as
select slots.q, slots.j, cast(case
    when slots.j < 4 and gold.d is not null then (gold.d * {chunks} + gold.start_at // {characters} + slots.j // 2) % getvariable('n_items')
    else hash(slots.q, slots.j) % getvariable('n_items') end as integer) as item
from (select t.q, unnest(range(211)) as j from range(getvariable('n_questions')) as t(q)) as slots
left join gold on gold.q = slots.q and gold.n = slots.j % 2 and slots.j < 4
;
insert into plain_candidates (list_id, rank, item, score)
select queries.query_id * 20 + shape.no, ranks.rank, pool.item, 1.0 / (60 + ranks.rank)
from queries, shape, (select unnest(range(1, 151)) as rank) as ranks, pool
where shape.no < 5 and ranks.rank <= shape.n
    and pool.q = queries.query_id // 4 % getvariable('n_questions')
    and pool.j = (ranks.rank * 7 + queries.query_id * 13 + shape.no * 29) % 211
order by queries.query_id, shape.no, ranks.rank;
insert into plain_candidates (list_id, rank, item)
select 1000000000 + 2 * (i // {chunks}), i % {chunks} + 1, i from range(getvariable('n_items')) as t(i);

create table named as
select candidates.list_id, items.chunk_id from candidates inner join items on candidates.item = items.item;
create table gold_ids as
select distinct items.chunk_id
from evidence_places as e
inner join item_ranges as r on e.doc_id = r.doc_id and r.start_at < e.end_at and r.end_at > e.start_at
inner join items on r.item = items.item;
"""


def build(path: Path, n_rows: int) -> None:
    """Make a store with about `n_rows` candidates, and the peer's table `named` in it; no verdict is computed yet."""
    n_queries = max(4, n_rows // ROWS_PER_QUERY)
    script = _BUILD.format(
        n_queries=n_queries,
        n_questions=max(1, n_queries // 4),
        n_documents=max(10, 3 * n_queries // 4),
        chunks=CHUNKS_PER_DOCUMENT,
        characters=CHUNK_CHARACTERS,
    )
    with database.connect(path) as connection:
        connection.execute(script)
        kept.forget(connection)
        connection.execute("checkpoint")


def _seconds(connection: duckdb.DuckDBPyConnection, statement: str, repeat: int = 3) -> float:
    """Seconds of the median of `repeat` runs; the result is counted inside DuckDB."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        connection.execute(statement).fetchall()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _used_bytes(connection: duckdb.DuckDBPyConnection) -> int:
    """Bytes of the file's blocks that hold something."""
    (row,) = connection.execute("select block_size * used_blocks from pragma_database_size()").fetchall()
    return int(row[0])


def _measured(path: Path, threads: int = 2, memory: str = "1GiB") -> Iterator[Row]:
    with database.connect(path) as connection:
        connection.execute(f"set threads = {threads}")
        connection.execute(f"set memory_limit = '{memory}'")
        (n_rows,) = connection.execute("select count(*) from candidates").fetchall()[0]
        _seconds(connection, SEMI_JOIN, 1)
        peer = _seconds(connection, SEMI_JOIN)
        yield Row(f"semi join on string ids, {n_rows:,} candidate rows", peer, "s", note=f"{threads} threads, {memory}")
        kept.forget(connection)
        connection.execute("checkpoint")
        bytes_before = _used_bytes(connection)
        began = time.perf_counter()
        kept.refresh(connection)
        refresh = time.perf_counter() - began
        connection.execute("checkpoint")
        yield Row("all verdicts computed, when the store changes", refresh, "s")
        yield Row("the same", refresh / peer, "× the semi join")
        yield Row("the verdicts on disk", (_used_bytes(connection) - bytes_before) / n_rows, "bytes a candidate")
        for view in VIEWS:
            columns = [row[0] for row in connection.execute(f"describe {view}").fetchall()]
            counted = ", ".join(f'count("{column}")' for column in columns)
            seconds = _seconds(connection, f"select count(*), {counted} from {view}")
            yield Row(f"{view}, whole, as read", seconds / peer, "× the semi join", BUDGET)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    yield Row("peak memory of this process", peak, "MB", note="the store's own making included")


def rows(options: Options) -> Iterator[Row]:
    """The whole views beside one hash semi join on string ids over the same candidates."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "verdicts.duckdb")
        build(path, options.scaled(N_ROWS, 100_000))
        yield from _measured(path)


def main() -> int:
    """Print one line a row; 1 when one is over its budget."""
    parser = arguments()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--store", type=Path, help="keep the store here, or use the one that is there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.store or Path(folder, "verdicts.duckdb")
        if not path.exists():
            build(path, Options(given.scale).scaled(N_ROWS, 100_000))
        found = list(shown(_measured(path, given.threads, given.memory), is_quiet=False))
    return int(any(row.is_met is False for row in found))


if __name__ == "__main__":
    sys.exit(main())
