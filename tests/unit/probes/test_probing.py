"""When a probe counts, what it costs, and what it leaves as it was. One store holds every case: each has its own document,
index, retriever and question under one name."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ragtrace as rt
from ragtrace.errors import ConfigurationError, ReportError
from ragtrace.gold import loading, placing
from ragtrace.probes import Retriever
from ragtrace.probes.faithful import is_faithful
from ragtrace.probes.stored import Probed
from ragtrace.reports import words
from ragtrace.reports.run import run
from ragtrace.store import database, merge
from tests.traced import Traced

TEXT = "alpha one. bravo two. charlie three. delta four. echo five. foxtrot six."
IDS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"]
FOUND = ["alpha", "bravo"]
HALVES = ["charlie", "alpha", "delta", "bravo", "foxtrot", "echo"]
COUNTED = ("recall_summary", "stage_recall", "stage_coverage")
Row = dict[str, Any]


def answering(ids: list[str]) -> Callable[[str, int, Any], list[str]]:
    return lambda query, k, _filter: ids[:k]


def broken(query: str, k: int, _filter: Any) -> list[str]:
    raise TimeoutError("no answer")


async def awaited(query: str, k: int, _filter: Any) -> list[str]:
    await asyncio.sleep(0)
    return IDS[:k]


def by_question(query: str, k: int, _filter: Any) -> list[str]:
    return ["delta", *FOUND][:k] if query.startswith("which is four") else IDS[:k]


@rt.retrieve(name="decorated", mode="ann", k=2)
def decorated(query: str) -> list[str]:
    return IDS


RETRIEVERS = [
    Retriever("equal version", answering(FOUND), answering(IDS), index_version=lambda: 7),
    Retriever("another version", answering(FOUND), answering(IDS), index_version=lambda: 8),
    Retriever("no version", answering(FOUND), answering(IDS)),
    Retriever("answers differ", answering(["alpha", "echo"]), answering(IDS)),
    Retriever("written since", answering(FOUND), answering(IDS)),
    Retriever("nothing to compare", exact=answering(IDS)),
    Retriever("raises", exact=broken, index_version=lambda: "7"),
    Retriever("coroutine", exact=awaited, index_version=lambda: "7"),
    Retriever("search raises", broken, get=lambda ids: []),
    Retriever("k not known", answering(FOUND), answering(IDS)),
    Retriever("drifted", by_question, by_question),
    Retriever("asked as it is too", by_question, answering(IDS)),
    Retriever("cut in two", answering(FOUND), answering(HALVES)),
    Retriever("absent", answering(FOUND), answering(FOUND), get=lambda ids: []),
    Retriever("present", answering(FOUND), answering(IDS)),
    Retriever("decorated", answering(FOUND), lambda query, k, _filter: decorated(query)),
]


class Asked(NamedTuple):
    """What the store said before and after."""

    before: Mapping[str, Row]
    after: Mapping[str, Row]
    counted_before: list[list[tuple[Any, ...]]]
    counted_after: list[list[tuple[Any, ...]]]
    voids: set[tuple[str, str, str | None]]
    n_own_stages: int
    first: Probed
    second: Probed
    late: Probed
    told: list[tuple[str, int, int]]
    gaps: list[dict[str, Any]]


def chunks(doc: str) -> list[rt.Chunk]:
    pieces = [f"{piece}." for piece in TEXT.removesuffix(".").split(". ")]
    return [rt.Chunk(name, piece, doc, TEXT.index(piece), TEXT.index(piece) + len(piece))
            for name, piece in zip(IDS, pieces, strict=True)]  # fmt: skip


def ingest(name: str) -> None:
    with rt.document(name):
        rt.parse(lambda: TEXT)()
        rt.chunk(index=name)(lambda _: chunks(name))(TEXT)
        if name not in ("absent", "present"):
            rt.index(index=name, complete=True)(lambda _: None)(chunks(name))


def search(name: str, query: str, **stage: Any) -> None:
    with rt.retrieve(name=name, mode="ann", k=2, query=query, index=name, **stage) as run:
        run.output(FOUND)


def ask(name: str) -> None:
    question = f"which is four? ({name})"
    with rt.query(question, question_id=name):
        if name == "drifted":
            search(name, rt.rewrite(name="hyde")(lambda _: "an imagined answer")(question))
        elif name == "asked as it is too":
            search(name, "another wording")
            search(name, question)
        elif name == "not registered":
            with rt.retrieve(name="some other stage", mode="ann", k=2, query=question, index=name) as run:
                run.output(FOUND)
        elif name == "k not known":
            with rt.retrieve(name=name, mode="ann", query=question, index=name) as run:
                run.output(FOUND)
        elif name == "reworded":
            search("equal version", "unknown words", index_version="7")
        else:
            search(name, question, index_version="7" if name in HAVE_VERSION else None)
        rt.context(FOUND)


HAVE_VERSION = ("equal version", "another version", "raises", "coroutine")
NAMES = [*(retriever.name for retriever in RETRIEVERS), "not registered"]


def label(name: str) -> Row:
    quote = "three. delta four. echo" if name == "cut in two" else "delta four."
    return {"question_id": name, "question": f"which is four? ({name})", "gold": [{"doc_id": name, "quote": quote}]}


REASONS = """
select question_id, stage_loss.lost_kind, stage_loss.reason, reasons.proof, reasons.probe, reasons.rank_after,
    reasons.rank_original, reasons.k, reasons.cause_stage
from stage_loss left join reasons using (query_id, question_id, evidence_id)
"""


def records(connection: Any) -> dict[str, Row]:
    found = connection.execute(REASONS)
    names = [column[0] for column in found.description]
    return {row[0]: dict(zip(names, row, strict=True)) for row in found.fetchall()}


def counted(connection: Any) -> list[list[tuple[Any, ...]]]:
    return [connection.execute(f"select * from {view} order by all").fetchall() for view in COUNTED]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Every case recorded, judged, and asked again in two goes."""
    folder: Path = tmp_path_factory.mktemp("probing")
    traced = Traced(folder / "traces.duckdb")
    for name in NAMES:
        ingest(name)
    for name in NAMES:
        ask(name)
    ingest("written since")
    traced.judge([label(name) for name in NAMES])
    traced.close()
    with database.connect(traced.store, read_only=True) as connection:
        before, counted_before = records(connection), counted(connection)
    told: list[tuple[str, int, int]] = []
    first = rt.probe(traced.store, RETRIEVERS, n_calls=3)
    rt.configure(traced.store, run="run", merge="off")  # a service that records while its retrievers are asked
    try:
        second = rt.probe(traced.store, RETRIEVERS, seconds=600, progress=lambda *step: told.append(step))
    finally:
        rt.shutdown(10)
    late = rt.probe(traced.store, RETRIEVERS, seconds=0)
    with database.connect(traced.store, read_only=True) as connection:
        runs = connection.execute(
            "select stages.name, probe_runs.probe, void from probe_runs join stages using (stage_id)"
        ).fetchall()
        stages = connection.execute(
            "select count(*) from stages where kind = 'retrieve' and (probe is null or probed_stage_id is null)"
        ).fetchall()
        return Asked(
            before, records(connection), counted_before, counted(connection), set(runs), stages[0][0], first, second,
            late, told, run(connection, "incomplete").records(),
        )  # fmt: skip


def test_before_it_is_asked_nothing_is_proved(asked: Asked) -> None:
    assert {name: row["reason"] for name, row in asked.before.items() if row["reason"] != "unprobed"} == {}
    assert {row["probe"] for row in asked.before.values()} == {"exact", "by_id"}


@pytest.mark.parametrize("name", ["equal version", "no version", "k not known", "coroutine", "decorated"])
def test_of_the_same_index_a_rank_past_k_is_below_k(asked: Asked, name: str) -> None:
    row = asked.after[name]

    assert (row["reason"], row["proof"], row["probe"], row["rank_after"], row["k"]) == (
        "below_k", "probe", "exact", 4, 2
    )  # fmt: skip


def test_an_equal_version_needs_no_control_question(asked: Asked) -> None:
    assert {probe for name, probe, _ in asked.voids if name == "equal version"} == {"exact"}
    assert {probe for name, probe, _ in asked.voids if name == "no version"} == {"again", "exact"}


def test_another_version_proves_nothing_and_is_not_asked(asked: Asked) -> None:
    assert asked.after["another version"]["reason"] == "unprobed"
    assert "another version" not in {name for name, _, _ in asked.voids}
    assert asked.first.void.get("index_version", 0) + asked.second.void.get("index_version", 0) >= 1


@pytest.mark.parametrize(
    ("name", "void"),
    [("answers differ", "answers_differ"), ("written since", "written_since"), ("raises", "failed")],
)
def test_an_answer_of_another_state_of_the_index_or_none_is_void(asked: Asked, name: str, void: str) -> None:
    assert asked.after[name]["reason"] == "unprobed"
    assert {found for one, _, found in asked.voids if one == name} == {void}


def test_the_report_says_how_many_probes_count_for_nothing(asked: Asked) -> None:
    assert {why for _, _, why in asked.voids if why} == {
        row["detail"] for row in asked.gaps if row["gap"] == "void_probe"
    }
    assert all(
        words.gap(row).endswith(words.VOIDS[row["detail"]]) and not row["is_serious"]
        for row in asked.gaps
        if row["gap"] == "void_probe"
    )


def test_where_nothing_can_be_compared_nothing_is_asked(asked: Asked) -> None:
    assert asked.after["nothing to compare"]["reason"] == "unprobed"
    assert "nothing to compare" not in {name for name, _, _ in asked.voids}


def test_the_rewrite_that_drifted_is_named_as_the_cause(asked: Asked) -> None:
    row = asked.after["drifted"]

    assert (row["reason"], row["cause_stage"], row["rank_original"], row["rank_after"]) == ("query_drift", "hyde", 1, 4)


def test_no_rewrite_is_to_blame_when_the_question_itself_was_searched_too(asked: Asked) -> None:
    """Its own search answers otherwise now and is void; the other wording is asked, and the question is not asked for it."""
    assert asked.after["asked as it is too"]["reason"] != "query_drift"
    assert "original_question" not in {probe for name, probe, _ in asked.voids if name == "asked as it is too"}


def test_a_span_cut_in_pieces_has_the_rank_of_the_last_of_them(asked: Asked) -> None:
    assert (asked.after["cut in two"]["reason"], asked.after["cut in two"]["rank_after"]) == ("below_k", 6)


def test_what_is_not_there_by_its_id_was_lost_at_the_index(asked: Asked) -> None:
    """Nobody recorded what was written: before, the loss was somewhere between the chunks and the retriever."""
    row = asked.after["absent"]

    assert asked.before["absent"]["lost_kind"] is None
    assert (row["lost_kind"], row["reason"], asked.before["absent"]["probe"]) == ("index", "not_indexed", "by_id")


def test_what_an_exact_search_finds_was_lost_at_the_retriever(asked: Asked) -> None:
    assert asked.before["present"]["lost_kind"] is None
    assert (asked.after["present"]["lost_kind"], asked.after["present"]["reason"]) == ("retrieve", "below_k")


def test_probes_count_nowhere(asked: Asked) -> None:
    """No recall and no stage changes by having asked again; the retriever's own decorated stages are not the service's."""
    assert asked.counted_before[0] == asked.counted_after[0]
    assert [row[:3] for row in asked.counted_before[1]] == [row[:3] for row in asked.counted_after[1]]
    assert asked.n_own_stages == len(NAMES) + 1


def test_no_call_begins_once_the_budget_is_used_up_and_the_next_command_goes_on(asked: Asked) -> None:
    assert asked.first.is_cut_short
    assert asked.first.n_calls in (3, 4, 5)  # a run that was begun is asked to its end
    assert not asked.second.is_cut_short
    assert asked.second.n_proved > 0
    assert (asked.late.n_calls, asked.late.is_cut_short) == (0, True)


def test_progress_is_told_of_each_run(asked: Asked) -> None:
    n = asked.second.n_asked

    assert asked.told == [("asking again", number, n) for number in range(1, n + 1)]


def test_what_is_not_registered_is_left_out_and_counted(asked: Asked) -> None:
    assert asked.second.skipped == {"not_registered": 1}


def mask(text: str) -> str:
    """The redactor of a service whose chunk ids hold names."""
    return text.replace("delta", "*****")


def test_names_that_the_service_redacts_are_redacted_here_too_or_nothing_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced = Traced(tmp_path / "traces.duckdb", redact=mask)
    ingest("no version")
    ask("no version")
    traced.judge([{**label("no version"), "gold": [{"doc_id": "no version", "quote": "four."}]}])
    traced.close()

    with pytest.raises(ConfigurationError, match="RAGTRACE_REDACT"):
        rt.probe(traced.store, RETRIEVERS)
    monkeypatch.setenv("RAGTRACE_REDACT", f"{__name__}:mask")
    assert rt.probe(traced.store, RETRIEVERS).n_proved == 1

    with database.connect(traced.store, read_only=True) as connection:
        (names,) = connection.execute("select string_agg(chunk_id, ' ') from items").fetchall()
    assert "delta" not in names[0]


@pytest.mark.parametrize(
    ("filter", "is_whole"),
    [
        (None, True),
        ({"lang": "en", "year": {"$gte": 2020}, "tags": ["a", "b"]}, True),
        ({"must": [{"type": "qdrant_client.http.models.FieldCondition"}]}, False),
        ({"text": {"type": "str", "length": 90_000}}, False),
        ({"tenant": "[not captured]"}, False),
    ],
)
def test_only_a_filter_that_came_through_whole_is_asked_under(filter: Any, is_whole: bool) -> None:
    assert is_faithful(filter) is is_whole


@pytest.mark.parametrize(
    "given",
    [
        {"name": "dense"},
        {"name": "", "search": answering(IDS)},
        {"name": "dense", "search": "not a function"},
        {"name": "dense", "search": answering(IDS), "max_k": 0},
    ],
)
def test_a_wrong_registration_says_so(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        rt.probe.register(**given)


def test_nothing_registered_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="register"):
        rt.probe(tmp_path / "traces.duckdb", [])


@pytest.fixture
def lost(tmp_path: Path) -> Iterator[Traced]:
    """One query of which dense missed `delta`; the index has version 7."""
    traced = Traced(tmp_path / "traces.duckdb")
    ingest("equal version")
    ask("equal version")
    traced.judge([label("equal version")])
    traced.close()
    yield traced
    traced.close()


def proofs(store: Path) -> set[tuple[str, str]]:
    with database.connect(store, read_only=True) as connection:
        return set(connection.execute("select evidence_id, reason from stage_loss").fetchall())


def test_coroutines_are_awaited_where_a_loop_runs(lost: Traced) -> None:
    """A notebook and asynchronous code have one; none other can run in their thread."""

    async def cell() -> Probed:
        return rt.probe(lost.store, [Retriever("equal version", exact=awaited, index_version=lambda: "7")])

    probed = asyncio.run(cell())

    assert (probed.n_proved, probed.n_failed, probed.failures) == (1, 0, {})


def test_a_decorated_coroutine_is_recorded_as_the_probe_itself(lost: Traced) -> None:
    """It runs in another thread, and what is current there is what was current here."""

    @rt.retrieve(name="its own stage", mode="ann", k=2)
    async def search(query: str, k: int, _filter: Any) -> list[str]:
        await asyncio.sleep(0)
        return IDS[:k]

    rt.configure(lost.store, run="run", merge="off")
    try:
        probed = rt.probe(lost.store, [Retriever("equal version", exact=search, index_version=lambda: "7")])
    finally:
        rt.shutdown(10)
    merge.merge(lost.store)

    assert probed.n_proved == 1
    with database.connect(lost.store, read_only=True) as connection:
        assert connection.execute("select count(*) from stages where name = 'its own stage'").fetchone() == (0,)


def test_what_a_retriever_raised_is_told_once_with_how_often(asked: Asked) -> None:
    said = {**asked.first.failures, **asked.second.failures}

    assert said["search raises: search raised TimeoutError: no answer"] == 1
    assert said["raises: exact raised TimeoutError: no answer"] == 1
    assert "failed" in {**asked.first.void, **asked.second.void}


def test_a_message_goes_through_the_redactor(lost: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    def leaking(query: str, k: int, _filter: Any) -> list[str]:
        raise ValueError(f"cannot parse {query!r}")

    monkeypatch.setenv("RAGTRACE_REDACT", f"{__name__}:masked")
    probed = rt.probe(lost.store, [Retriever("equal version", exact=leaking, index_version=lambda: "7")])

    assert list(probed.failures) == [
        "equal version: exact raised ValueError: cannot parse '*** is ***? (equal version)'"
    ]


def masked(text: str) -> str:
    return text.replace("which", "***").replace("four", "***")


def test_an_answer_that_is_no_list_and_a_version_that_raises_are_told_too(lost: Traced) -> None:
    def version() -> str:
        raise LookupError("no such index")

    probed = rt.probe(lost.store, [Retriever("equal version", lambda *_: 7, index_version=version)])

    assert probed.failures == {
        "equal version: index_version raised LookupError: no such index": 1,
        "equal version: search returned no candidate list: int": 1,
    }
    assert (probed.n_failed, probed.n_calls, probed.void) == (1, 1, {"failed": 1})


def test_what_was_lost_meanwhile_takes_no_proof_away(lost: Traced) -> None:
    """The service goes on: another query misses its evidence while the first one is proved."""
    ingested: list[str] = []

    def exact(query: str, k: int, _filter: Any) -> list[str]:
        if not ingested:
            ingested.append("absent")
            service = threading.Thread(target=lambda: (ingest("absent"), ask("absent")))
            service.start()
            service.join()
            rt.flush(10)
        return IDS[:k]

    with database.connect(lost.store) as connection:
        loading.load_rows(connection, [label("equal version"), label("absent")], min_coverage=1.0, clock_skew_ms=None)
    rt.configure(lost.store, run="run", merge="off")
    try:
        probed = rt.probe(lost.store, [Retriever("equal version", exact=exact, index_version=lambda: "7")])
    finally:
        rt.shutdown(10)

    assert (probed.n_proved, probed.n_unproved) == (1, 1)


def test_a_label_that_comes_later_is_asked_for_by_its_own_id(lost: Traced) -> None:
    """`why` says by its id again, since nobody asked for that chunk yet; then it is asked."""
    asked_ids: list[list[str]] = []

    def get(ids: list[str]) -> list[str]:
        asked_ids.append(sorted(ids))
        return [name for name in ids if name == "delta"]

    retriever = Retriever("equal version", exact=answering(FOUND), get=get, index_version=lambda: "7")
    rt.probe(lost.store, [retriever])
    labelled = label("equal version")
    labelled["gold"].append({"doc_id": "equal version", "quote": "echo five."})
    with database.connect(lost.store) as connection:
        loading.load_rows(connection, [labelled], min_coverage=1.0, clock_skew_ms=None)
        placing.place(connection)
        recommended = dict(connection.execute("select evidence_id, probe from reasons").fetchall())
    rt.probe(lost.store, [retriever])

    assert recommended == {"equal version#1.1": "deeper", "equal version#1.2": "by_id"}
    assert asked_ids == [["delta"], ["delta", "echo"]]
    assert proofs(lost.store) == {("equal version#1.1", "unprobed"), ("equal version#1.2", "not_indexed")}


def test_an_unknown_run_is_an_error_and_asks_nothing(lost: Traced) -> None:
    with pytest.raises(ReportError, match="no run is named 'rum'; nearest: run"):
        rt.probe(lost.store, RETRIEVERS, run="rum")
