"""Charts show the numbers of the terminal's report, say what they are counted over, and do not read markup."""

from __future__ import annotations

import pytest

from ragtrace.reports import drawing, page, pictures
from ragtrace.reports.run import Result, run
from ragtrace.reports.summary import summarise


@pytest.fixture(scope="module")
def drawn(library_path):
    from ragtrace.store import database

    with database.connect(library_path, read_only=True) as connection:
        read = page.read_pictures(connection, summarise(connection))
        return read.blocks, {picture.name: picture for picture in read.pictures}


def form(picture):
    return picture.views[0].form


def test_the_waterfall_ends_at_the_final_context_recall(drawn):
    blocks, charts = drawn
    (recall,) = blocks["recall"].records()
    data = form(charts["waterfall"])["data"]
    kept = dict(zip(data[0]["y"], data[0]["x"], strict=True))

    assert kept[max(kept)] == pytest.approx(recall["final_context_recall"])
    assert charts["waterfall"].said == f"Mean over {recall['n_judged']} of {recall['n_queries']} scored queries."


def test_kept_lost_and_gained_of_a_line_make_up_the_line_before(drawn):
    blocks, charts = drawn
    bars = {bar["name"]: dict(zip(bar["y"], bar["x"], strict=True)) for bar in form(charts["waterfall"])["data"]}
    for y, row in enumerate(blocks["waterfall"].records()):
        if row["change"] is not None:
            gained, lost = (bars.get(name, {}).get(y, 0) for name in ("gained here", "lost here"))
            assert bars["recall"][y] + gained == pytest.approx(row["recall"])
            assert bars["recall"][y] + lost == pytest.approx(row["recall"] - row["change"] + min(0, gained))


def test_the_flow_loses_no_span_and_invents_none(drawn, library_store):
    """What goes into a place goes on or ends there; all ends together are the spans of stage_loss."""
    (sankey,) = form(drawn[1]["flow"])["data"]
    link = sankey["link"]
    into: dict[int, int] = {}
    out: dict[int, int] = {}
    for source, target, n in zip(link["source"], link["target"], link["value"], strict=True):
        out[source] = out.get(source, 0) + n
        into[target] = into.get(target, 0) + n
    (n_spans,) = library_store.execute("select count(*) from stage_loss").fetchone()

    assert all(into[node] == out[node] for node in out if node)
    assert out[0] == sum(n for node, n in into.items() if node not in out) == n_spans


def test_the_flow_goes_through_the_stages_in_their_order(drawn):
    (sankey,) = form(drawn[1]["flow"])["data"]
    names = [name.split(":")[0] for name in sankey["node"]["label"]]

    assert names.index("evidence") < names.index("rrf") < names.index("cross encoder")


def test_losses_are_those_of_the_table(drawn):
    blocks, charts = drawn
    data = form(charts["losses"])["data"]

    assert sum(sum(bar["x"]) for bar in data) == sum(row["n_spans"] for row in blocks["losses"].records())
    assert charts["losses"].table.rows == blocks["losses"].without("run").rows


def test_shares_of_a_kind_of_question_make_one(drawn):
    data = form(drawn[1]["kinds"])["data"]
    shares: dict[int, float] = {}
    for bar in data:
        for y, share in zip(bar["y"], bar["x"], strict=True):
            shares[y] = shares.get(y, 0) + share

    assert list(shares.values()) == pytest.approx([1.0] * len(shares))


def test_the_spread_counts_every_judged_query_once(drawn, library_store):
    (row,) = drawn[0]["recall"].records()
    for bar in form(drawn[1]["spread"])["data"]:
        assert sum(bar["y"]) == row["n_judged"]
    recalls = [
        recall for (recall,) in library_store.execute("select final_context_recall from query_recall").fetchall()
    ]
    below = sum(recall < 1 for recall in recalls) / len(recalls)
    assert f"final context: {below:.0%} below 1" in drawn[1]["spread"].said


def test_rank_moves_of_a_stage_are_its_spans(drawn, library_store):
    rows = run(library_store, "rank_moves").records()
    for stage in {row["stage"] for row in rows}:
        own = [row for row in rows if row["stage"] == stage]
        assert sum(row["n_spans"] for row in own) == own[0]["n_stage"]
    assert len(drawn[1]["moves"].views) == len({row["stage"] for row in rows})


def test_nothing_to_draw_is_a_sentence():
    empty = {"losses": ("run", "lost_kind"), "evidence_flow": ("run", "n_before"), "recall_spread": ("run", "cut")}
    for name, columns in empty.items():
        picture = pictures.DRAWN[name](Result(columns, ("varchar",) * 2, []))
        assert picture.views == ()
        assert picture.said.startswith("No ")


def test_markup_in_a_name_is_text_to_plotly():
    """Plotly reads some HTML in labels; an address in a stage's name must not become a link."""
    assert drawing.label('<a href="https://x">b</a>', 60) == '&lt;a href="https://x"&gt;b&lt;/a&gt;'
    assert drawing.label("x\u202ey") == "x\ufffdy"


def test_a_kind_of_stage_has_one_colour_in_every_chart_and_its_losses_differ_by_pattern():
    kinds = ["fuse", "rerank", "fuse", None]

    looks = drawing.looks(kinds)

    assert looks[0][0] == looks[2][0] != looks[1][0]
    assert looks[0][1] != looks[2][1]
    assert looks[1] == drawing.looks(["rerank"])[0]
    assert looks[3][0] == drawing.RED


def test_no_two_kinds_at_which_evidence_is_lost_share_a_colour():
    kinds = (
        "ingest",
        "parse",
        "chunk",
        "index",
        "retrieve",
        "fuse",
        "filter",
        "rerank",
        "expand",
        "compress",
        "truncate",
    )

    assert (
        len({colour for colour, _ in drawing.looks(kinds)} | {drawing.RED, drawing.BLUE, drawing.GREY})
        == len(kinds) + 3
    )
