"""Rank metrics of 20,000 queries × 100 candidates from the file, beside trec_eval's own code from dictionaries that are ready.

`python -m benchmarks.metrics`. The peer's time does not count reading a run or building its dictionaries.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

from benchmarks.harness import Options, Row, main
from ragtrace.store import database, kept

__all__ = ["rows"]

N_QUERIES, N_CANDIDATES, N_RELEVANT, N_ITEMS = 20_000, 100, 10, 50_000
DEPTH = 10

_BUILD = """
set variable n = {n};
insert into items (item, chunk_id, id_source, version) select i, 'chunk-' || i, 'native', 0 from range({n_items}) as t(i);
insert into questions (question_id, question, question_hash, is_unanswerable, is_evidence_unknown)
select 'q' || q, 'q' || q, 'q' || q, false, false from range(getvariable('n')) as t(q);
insert into evidence (evidence_id, question_id, set_no, need, is_need, level, grade, chunk_id, n_characters, label_status)
select format('q{{}}#1.{{}}', q, r), 'q' || q, 1, r::varchar, true, 'chunk', 1 + hash(q, r) % 3, 'chunk-' || (hash(q) + r * 7) % {n_items}, 1, 'placed'
from range(getvariable('n')) as t(q), range({n_relevant}) as u(r);
insert into queries (query_id, run, run_kind, question_id, status, started_at_ns, process_id)
select q, 'run', 'actual', 'q' || q, 'ok', 1000, 1 from range(getvariable('n')) as t(q);
insert into query_flows (query_id, final_how, is_whole, n_places) select query_id, 'only_generate', true, 1 from queries;
insert into stages (stage_id, query_id, kind, name, status, start_no, end_no, k)
select query_id, query_id, 'retrieve', 'dense', 'ok', 1, 2, {n_candidates} from queries;
insert into lists (list_id, query_id, stage_id, role, n_candidates, is_complete)
select query_id, query_id, query_id, 'out', {n_candidates}, true from queries;
insert into places (query_id, place_no, stage_id, side, step, is_on_path, place_order, counts_stands_for, later_nos)
select query_id, 1, query_id, 'out', 2, true, 1000002, false, [] from queries;
insert into place_lists (query_id, place_no, list_id) select query_id, 1, query_id from queries;
insert into plain_candidates (list_id, rank, item, score)
select q, r + 1, (hash(q) + r * 3) % {n_items}, 1.0 / (r + 1) from range(getvariable('n')) as t(q), range({n_candidates}) as u(r)
order by q, r;
"""


def rows(options: Options) -> Iterator[Row]:
    """All queries, all measures at one depth; the same at every scale, as the budget is for so many."""
    import pytrec_eval

    n = N_QUERIES
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metrics.duckdb"
        with database.connect(path) as connection:
            kept.forget(connection)
            connection.execute(_BUILD.format(n=n, n_items=N_ITEMS, n_relevant=N_RELEVANT, n_candidates=N_CANDIDATES))
            connection.execute("insert into store_facts values ('kept_is_stale', '1')")
            kept.refresh(connection)
        with duckdb.connect(str(path), read_only=True) as connection:
            qrels: dict[str, dict[str, int]] = {}
            for question, chunk, grade in connection.execute(
                "select question_id, chunk_id, grade from evidence"
            ).fetchall():
                qrels.setdefault(question, {})[chunk] = int(grade)
            run: dict[str, dict[str, float]] = {}
            for question, chunk, rank in connection.execute(
                "select question_id, chunk_id, rank from candidate_list join queries using (query_id)"
            ).fetchall():
                run.setdefault(question, {})[chunk] = float(-rank)
        evaluator = pytrec_eval.RelevanceEvaluator(
            qrels, {f"{name}.{DEPTH}" for name in ("P", "recall", "ndcg_cut", "map_cut", "success")} | {"recip_rank"}
        )
        begin = time.perf_counter()
        evaluator.evaluate(run)
        theirs_s = time.perf_counter() - begin
        yield Row(f"pytrec_eval, {n:,} × {N_CANDIDATES}, from ready dictionaries", theirs_s, "s")
        samples = []
        for _ in range(3):
            with duckdb.connect(str(path), read_only=True) as connection:
                connection.execute(f"create temp table rank_cutoffs as select cast({DEPTH} as bigint) as k")
                begin = time.perf_counter()
                connection.execute("select unit, recall, ndcg_linear from stage_metrics").fetchall()
                samples.append(time.perf_counter() - begin)
        yield Row("rank metrics of all, from the file", min(samples) / theirs_s, "× pytrec_eval", 0.1)


if __name__ == "__main__":
    sys.exit(main(rows))
