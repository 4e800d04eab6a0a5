"""One question: the recorded queries it means, and for each what its evidence met, as named results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace import digest
from ragtrace.errors import QuestionNotFoundError
from ragtrace.reports import sentences
from ragtrace.reports.run import Result, run
from ragtrace.reports.words import STATES

if TYPE_CHECKING:
    import duckdb

__all__ = ["Explained", "explain", "find", "lines", "told"]

_MOST_NEAREST = 5


class Explained(NamedTuple):
    """What is known of one recorded query."""

    query: dict[str, Any]
    """Its row of `matching_queries`."""
    question_verdict: dict[str, Any] | None
    """Its row of `question_loss`; None when the query is left out of the numbers."""
    evidence: Result
    reasons: Result
    places: Result
    surroundings: Result

    def as_json(self) -> dict[str, Any]:
        """The same by stable names."""
        return self._asdict()


def find(connection: duckdb.DuckDBPyConnection, asked: str) -> Result:
    """The recorded queries with that query_id, question_id or text, the newest first.

    Raises: QuestionNotFoundError; `fields["nearest"]` holds the nearest questions, the nearest first.
    """
    found = run(connection, "matching_queries", asked=asked, text_hash=digest.of_text(asked))
    if found.rows:
        return found
    nearest = run(connection, "nearest_questions", asked=asked, n=_MOST_NEAREST).records()
    if not nearest:
        raise QuestionNotFoundError("no query is recorded in this store yet", asked=asked, nearest=[])
    offered = "; ".join(_offered(row) for row in nearest[:3])
    raise QuestionNotFoundError(
        f"no recorded query has the id or the text {asked!r}; nearest: {offered}", asked=asked, nearest=nearest
    )


def explain(connection: duckdb.DuckDBPyConnection, query: dict[str, Any]) -> Explained:
    """Everything the store says of one recorded query. Every result is empty when the query is not scored."""
    query_id = query["query_id"]
    verdict = run(connection, "why_question", query_id=query_id).records()
    return Explained(
        query=query,
        question_verdict=verdict[0] if verdict else None,
        evidence=run(connection, "why_evidence", query_id=query_id),
        reasons=run(connection, "why_reasons", query_id=query_id),
        places=run(connection, "why_places", query_id=query_id),
        surroundings=run(connection, "why_text", query_id=query_id),
    )


def lines(explained: Sequence[Explained]) -> Result:
    """The places of all queries in one table, query_id first: for CSV and Markdown."""
    return explained[0].places._replace(rows=[row for one in explained for row in one.places.rows])


def told(reasons: Sequence[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """The rows of `why_reasons` of one piece of evidence worth telling, each behind its sentence, in their order.

    Two retrievers that missed it, with nothing proved of either: one sentence is enough, in the row of the first under
    both names. A label that is kept apart has none.
    """
    alike: dict[str, list[dict[str, Any]]] = {}
    for row in reasons:
        if row["verdict"] not in STATES:
            alike.setdefault(sentences.verdict(row), []).append(row)
    return [(said, _as_one(rows)) for said, rows in alike.items()]


def _as_one(rows: list[dict[str, Any]]) -> dict[str, Any]:
    names = dict.fromkeys(row["stage"] for row in rows if row["stage"] is not None)
    return rows[0] if len(names) < 2 else {**rows[0], "stage": " and ".join(names)}


def _offered(row: dict[str, Any]) -> str:
    if row["question_id"] is None:
        return f"{row['question']!r}"
    return row["question_id"] if row["question"] is None else f"{row['question_id']} ({row['question']!r})"
