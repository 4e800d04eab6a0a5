"""A vocabulary is not asked about a span in which nothing stands that it looks at, and is missed by nobody."""

from __future__ import annotations

import pytest

from ragtrace.integrations.otel import rules
from ragtrace.integrations.otel.listing import List, listed
from ragtrace.integrations.otel.rules import Rule, Vocabulary
from ragtrace.integrations.otel.spans import Span


def span(**attributes: object) -> Span:
    return Span(1, 2, 0, "search", "ours", 0, 1, {name.replace("__", "."): value for name, value in attributes.items()})


RULE = Rule("retrieve", {"store.kind": ("search",), "store.hits.": ()}, output=List(("store.hits.{i}.",)))


@pytest.mark.parametrize(
    ("attributes", "is_read"),
    [
        ({"store__kind": "search"}, True),
        ({"store__hits__0__id": "a"}, True),
        ({"meta": '{"run": "r"}'}, True),
        ({"asked_0": "x"}, True),
        ({"call__args__x": "x"}, True),
        ({"stores__kind": "search", "other": 1}, False),
        ({}, False),
    ],
)
def test_what_a_vocabulary_looks_at_is_known_beforehand(attributes: dict[str, object], is_read: bool) -> None:
    vocabulary = Vocabulary("ours", (RULE,), session=("call.args.*",), question_id=("asked_{i}",), run=("meta|run",))
    assert vocabulary.may_read(span(**attributes)) is is_read


@pytest.mark.parametrize("rule", [Rule("retrieve", name="search"), Rule("retrieve", scope="ours")])
def test_one_that_goes_by_the_name_or_the_scope_is_always_asked(rule: Rule) -> None:
    assert rules.said(span(), [Vocabulary("ours", (rule,))]) is not None


def test_items_with_other_keys_between_are_read_with_their_own() -> None:
    found = listed(
        span(
            store__hits=[
                {"id": "a", "s": 0.5},
                {"id": "b", "s": "0.25"},
                {"id": "c", "metadata": {"k": 1}},
                {"id": "d"},
            ]
        ),
        List(("store.hits",), {"s": "score"}),
        None,
    )
    assert found is not None
    assert found[0].rows == [
        {"id": "a", "score": 0.5},
        {"id": "b", "score": 0.25},
        {"id": "c", "metadata": {"k": 1}},
        {"id": "d"},
    ]


def test_the_senders_own_values_are_not_changed() -> None:
    sent = [{"role": "tool", "id": "a", "score": None}, {"role": "tool", "id": "b", "score": 1.0}]
    found = listed(span(store__hits=sent), List(("store.hits",)), None)
    assert found is not None
    assert found[0].rows == [{"id": "a"}, {"id": "b", "score": 1.0}]
    assert sent[1] == {"role": "tool", "id": "b", "score": 1.0}


def test_numbers_out_of_order_and_absurd_ones_are_told() -> None:
    whole = listed(span(**{"store__hits__1__id": "b", "store__hits__0__id": "a"}), List(("store.hits.{i}.",)), None)
    assert whole is not None
    assert ([row["id"] for row in whole[0].rows], whole[0].is_complete) == (["a", "b"], True)
    gap = listed(span(**{"store__hits__2__id": "c"}), List(("store.hits.{i}.",)), None)
    assert gap is not None
    assert (gap[0].rows, gap[0].is_complete) == ([{}, {}, {"id": "c"}], False)
    absurd = listed(span(**{f"store__hits__{'9' * 18}__id": "c"}), List(("store.hits.{i}.",)), None)
    assert absurd is not None
    assert (absurd[0].rows, absurd[0].is_complete) == ([], False)
