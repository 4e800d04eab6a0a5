"""Spans of a trace in any order, late, twice and with holes: what is not surely lost is never called lost."""

from __future__ import annotations

import itertools

import pytest
from collectors.conftest import settings_of
from collectors.sent import REMOTE, send, span
from collectors.zoo import EXPECTED, GOLD, PROMPT, QUESTION, RETRIEVED, documents

from ragtrace.cli.opening import bring_up_to_date
from ragtrace.gold import loading
from ragtrace.integrations.otel.vocabularies import VOCABULARIES
from ragtrace.store import database
from ragtrace_collectors.intake import Intake

KIND = "openinference.span.kind"
KEPT, UNOBSERVED = ("kept", None, None), ("unobserved", None, None)
DOCUMENT = ("id", "score", "content", "metadata")


def service(trace: int = 7, question: str = QUESTION, **of_retriever):
    """Four spans as OpenInference writes them, the retriever with what a test says besides."""
    attributes = {KIND: "RETRIEVER", "input.value": question, **documents("retrieval.documents", RETRIEVED)}
    attributes.update(of_retriever.pop("attributes", {}))
    for name in of_retriever.pop("without", ()):
        del attributes[name]
    return [
        span(1, "answer", {KIND: "CHAIN", "input.value": question}, trace=trace, at=(0, 100)),
        span(2, "dense", attributes, parent=1, trace=trace, at=(1, 10), **of_retriever),
        span(
            3,
            "cross encoder",
            {
                KIND: "RERANKER",
                "reranker.query": question,
                **documents("reranker.input_documents", RETRIEVED),
                **documents("reranker.output_documents", RETRIEVED[:3]),
            },
            parent=1,
            trace=trace,
            at=(11, 20),
        ),
        span(
            4,
            "model",
            {KIND: "LLM", "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": PROMPT},
            parent=1,
            trace=trace,
            at=(21, 90),
        ),
    ]


SCENES = {}
"""Each is taken in as a run of its own; all are merged once."""


def scene(function):
    SCENES[function.__name__] = function
    return function


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    store = tmp_path_factory.mktemp("scenes") / "traces.duckdb"
    for name, play in SCENES.items():
        intake = Intake(settings_of(store)._replace(run=name), VOCABULARIES)
        play(intake)
        intake.close()
    bring_up_to_date(store)
    with database.connect(store) as connection:
        loading.load_rows(connection, GOLD)
        yield lambda sql, name: connection.execute(sql, {"run": name}).fetchall()


LOSSES = "select verdict, lost_kind, lost_at from stage_loss where run = $run order by query_id, evidence_id"
STAGES = "from stages s join queries q using (query_id) where run = $run order by s.start_no"
LISTS = "from lists l join queries q using (query_id) where run = $run and role = 'out'"


@scene
def any_order(intake):
    """All 24 orders, each span in a request of its own, as traces of their own."""
    for number, order in enumerate(itertools.permutations(range(4)), 1):
        spans = service(trace=number)
        for place in order:
            send(intake, spans[place])


def test_the_order_of_arrival_changes_nothing(ask):
    assert ask(LOSSES, "any_order") == EXPECTED * 24
    assert ask("select n_stages from queries where run = $run", "any_order") == [(3,)] * 24


@scene
def twice(intake):
    """Before the trace is written, and after."""
    spans = service()
    send(intake, *spans)
    send(intake, *spans[1:3])
    intake.write_all()
    send(intake, *spans)


def test_what_comes_twice_counts_once(ask):
    assert ask("select count(*) from queries where run = $run", "twice") == [(1,)]
    assert len(ask(f"select kind {STAGES}", "twice")) == 3
    assert ask(LOSSES, "twice") == EXPECTED


@scene
def one_instant(intake):
    """A clock of milliseconds: everything happens at one of them."""
    for one in (spans := service()):
        one["start_time_unix_nano"] = one["end_time_unix_nano"] = spans[0]["start_time_unix_nano"]
    send(intake, *spans)


def test_equal_clock_readings_leave_the_order_of_the_tree(ask):
    assert ask(LOSSES, "one_instant") == EXPECTED


@scene
def too_late(intake):
    root, *stages = service()
    send(intake, root, stages[0], stages[2])
    intake.write_all()
    send(intake, stages[1])


def test_a_stage_that_comes_after_its_query_was_written_leaves_it_unjudged(ask):
    assert set(ask(LOSSES, "too_late")) == {UNOBSERVED}
    lost = """
    select l.n from losses l join queries q using (process_id) where l.reason = 'late_span' and q.run = $run
    """
    assert ask(lost, "too_late") == [(1,)]


@scene
def no_root(intake):
    send(intake, *service()[1:])


def test_without_their_parent_stages_lose_nothing_for_sure(ask):
    """Whatever else was below it may be missing too. What stands in the prompt is there all the same."""
    assert ask(LOSSES, "no_root") == [KEPT, UNOBSERVED, UNOBSERVED, UNOBSERVED]


@scene
def remote_flag(intake):
    root, *stages = service()
    root.update(parent_span_id=(99).to_bytes(8, "big"), flags=REMOTE)
    send(intake, root, *stages)


@scene
def server_kind(intake):
    root, *stages = service()
    root.update(parent_span_id=(99).to_bytes(8, "big"), kind=2)
    send(intake, root, *stages)


@pytest.mark.parametrize("name", ["remote_flag", "server_kind"])
def test_a_parent_in_another_process_is_not_missed(ask, name):
    assert ask(LOSSES, name) == EXPECTED


def without_the_rerankers_lists(**retriever):
    spans = service(**retriever)
    spans[2]["attributes"] = [one for one in spans[2]["attributes"] if "documents" not in one["key"]]
    return spans[:3]


@scene
def first_row_dropped(intake):
    names = [f"retrieval.documents.0.document.{key}" for key in DOCUMENT]
    send(intake, *without_the_rerankers_lists(dropped=4, without=names))


@scene
def hole(intake):
    names = [f"retrieval.documents.2.document.{key}" for key in DOCUMENT]
    send(intake, *without_the_rerankers_lists(without=names))


@scene
def something_dropped(intake):
    send(intake, *without_the_rerankers_lists(dropped=1))


@pytest.mark.parametrize("name", ["first_row_dropped", "hole", "something_dropped"])
def test_a_list_with_holes_is_incomplete_and_keeps_its_ranks(ask, name):
    assert ask(f"select l.is_complete, l.n_candidates {LISTS} order by 2", name) == [(False, 0), (False, 5)]
    ranks = f"""
    select c.rank, i.chunk_id from candidates c join items i using (item)
    where c.list_id in (select l.list_id {LISTS}) and i.chunk_id is not null
    """
    found = ask(ranks, name)
    assert len(found) >= 4
    assert all(chunk_id == f"c{rank - 1}" for rank, chunk_id in found)
    assert "lost" not in {verdict for verdict, _, _ in ask(LOSSES, name)}


@scene
def empty_and_hidden(intake):
    """LangChain's instrumentation writes no documents when there are none, but the output as JSON."""
    names = [f"retrieval.documents.{number}.document.{key}" for number in range(5) for key in DOCUMENT]
    send(intake, *service(trace=1, without=names, attributes={"output.value": '{"documents": []}'})[:2])
    send(intake, *service(trace=2, without=names)[:2])


def test_a_list_is_empty_only_where_that_is_written(ask):
    assert ask(f"select l.is_complete, l.n_candidates {LISTS} order by 1", "empty_and_hidden") == [
        (False, 0),
        (True, 0),
    ]


@scene
def prompt_dropped(intake):
    spans = service()
    spans[3]["dropped_attributes_count"] = 1
    send(intake, *spans)


def test_a_prompt_of_which_something_was_dropped_is_incomplete(ask):
    assert ask(LOSSES, "prompt_dropped") == [KEPT, UNOBSERVED, UNOBSERVED, UNOBSERVED]


@scene
def loop(intake):
    """An evaluation traced as a whole: 3 questions, one trace."""
    spans = [span(1000, "evaluate", {}, at=(0, 1000))]
    for number in range(3):
        for one in service(question=f"Question {number}?"):
            base = 10 * (number + 1)
            parent = int.from_bytes(one["parent_span_id"], "big")
            one["span_id"] = (int.from_bytes(one["span_id"], "big") + base).to_bytes(8, "big")
            one["parent_span_id"] = (parent + base if parent else 1000).to_bytes(8, "big")
            spans.append(one)
    send(intake, *spans)


def test_questions_in_a_loop_under_one_span_are_queries_of_their_own(ask):
    asked = "select question, n_stages from queries where run = $run order by 1"
    assert ask(asked, "loop") == [(f"Question {number}?", 3) for number in range(3)]


@scene
def ensemble(intake):
    root, dense, *_ = service()
    inner = [
        span(10 + n, name, {KIND: "RETRIEVER", **documents("retrieval.documents", found)}, parent=2, at=(2 + n, 6))
        for n, (name, found) in enumerate([("vectors", RETRIEVED[:3]), ("words", RETRIEVED[2:])])
    ]
    send(intake, root, dense, *inner)


def test_a_retriever_that_asks_others_is_a_fusion(ask):
    assert ask(f"select s.kind, s.name, s.parent_stage_id is not null {STAGES}", "ensemble") == [
        ("fuse", "dense", False),
        ("retrieve", "vectors", True),
        ("retrieve", "words", True),
    ]


@scene
def failed(intake):
    send(intake, *service(error="no connection", events=[("exception", {"exception.type": "TimeoutError"})])[:2])


def test_a_stage_that_failed_says_how(ask):
    assert ask(f"select s.status, s.error_type, s.error_message {STAGES}", "failed") == [
        ("error", "TimeoutError", "no connection")
    ]


@scene
def ids(intake):
    send(intake, *service(trace=0xABC))


def test_ids_and_times_are_those_of_the_spans(ask):
    assert ask(f"select s.trace_id, s.span_id, s.parent_span_id, s.duration_ns {STAGES} limit 1", "ids") == [
        (f"{0xABC:032x}", f"{2:016x}", f"{1:016x}", 9_000_000)
    ]
    assert ask("select trace_id, span_id from queries where run = $run", "ids") == [(f"{0xABC:032x}", f"{1:016x}")]


@scene
def named(intake):
    resource = {"service.name": "shop", "ragtrace.run": "by resource"}
    send(intake, *service(trace=1), resource=resource)
    spans = service(trace=2)
    spans[0]["attributes"].extend(span(1, "", {"ragtrace.run": "by span", "ragtrace.question_id": "q-9"})["attributes"])
    send(intake, *spans, resource=resource)


@pytest.mark.parametrize(("run", "question_id"), [("by resource", None), ("by span", "q-9")])
def test_the_run_and_the_service_are_what_a_span_or_its_resource_says(ask, run, question_id):
    asked = "select question_id, service from queries join processes using (process_id) where run = $run"
    assert ask(asked, run) == [(question_id, "shop")]
