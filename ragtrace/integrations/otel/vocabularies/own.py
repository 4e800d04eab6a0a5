"""What a team may add to any span of its own, whoever made it: `ragtrace.question_id`, `ragtrace.run`, `ragtrace.session`."""

from __future__ import annotations

from ragtrace.integrations.otel.rules import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    "ragtrace",
    (),
    session=("ragtrace.session", "gen_ai.conversation.id"),
    question_id=("ragtrace.question_id",),
    run=("ragtrace.run",),
)
