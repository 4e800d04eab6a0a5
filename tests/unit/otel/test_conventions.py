"""Attributes have the names of OpenTelemetry's conventions, so that other back ends show the stage too."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragtrace as rt
from ragtrace import attributes

from .provided import Provided

# The name that the conventions give it since they have a repository of their own; the package has none yet.
NEWER_THAN_THE_PACKAGE = {"gen_ai.retrieval.top_k"}


def names() -> set[str]:
    return {name for word in attributes.__all__ if isinstance(name := getattr(attributes, word), str)}


def test_names_are_those_of_the_installed_conventions() -> None:
    gen_ai = pytest.importorskip(
        "opentelemetry.semconv._incubating.attributes.gen_ai_attributes",
        reason="the installed conventions have no gen_ai names",
    )
    if not hasattr(gen_ai, "GEN_AI_RETRIEVAL_QUERY_TEXT"):
        pytest.skip("the installed conventions are older than retrieval spans")
    known = {value for name, value in vars(gen_ai).items() if name.startswith("GEN_AI_") and isinstance(value, str)}
    ours = names()
    assert {name for name in ours if name.startswith("gen_ai.")} - NEWER_THAN_THE_PACKAGE <= known
    operations = {one.value for one in gen_ai.GenAiOperationNameValues}
    assert set(attributes.OPERATIONS.values()) <= operations
    from opentelemetry.semconv.attributes import error_attributes

    assert error_attributes.ERROR_TYPE == attributes.ERROR_TYPE


def test_all_other_names_are_under_our_own() -> None:
    ours = names()
    assert {name.split(".")[0] for name in ours} == {"gen_ai", "ragtrace", "error"}


def test_a_retrieval_says_what_it_is_and_how_much_was_asked_for(provided: Provided, ragtrace_store: Path) -> None:
    provided.record_into(ragtrace_store)
    with rt.query("q"):
        rt.retrieve(name="dense", k=50, index="handbook")(lambda query: ["a", "b"])("q")
        rt.rerank(name="rerank", k=1)(lambda query, found: found[:1])("q", ["a", "b"])
    found = dict(provided.span("dense").attributes or {})
    assert found[attributes.OPERATION_NAME] == "retrieval"
    assert found[attributes.TOP_K] == 50
    assert found[attributes.DATA_SOURCE_ID] == "handbook"
    assert found[attributes.N_CANDIDATES] == 2
    # The conventions have no name for a reranker: it must not pass for a retrieval.
    assert attributes.OPERATION_NAME not in (provided.span("rerank").attributes or {})


def test_a_failed_stage_names_its_error_as_the_conventions_do(provided: Provided, ragtrace_store: Path) -> None:
    provided.record_into(ragtrace_store)

    @rt.retrieve
    def broken(query: str) -> list[str]:
        raise KeyError("secret")

    with pytest.raises(KeyError), rt.query("q"):
        broken("q")
    span = provided.span("broken")
    assert (span.attributes or {})[attributes.ERROR_TYPE] == "KeyError"
    assert not span.status.is_ok and "secret" not in span.to_json()
