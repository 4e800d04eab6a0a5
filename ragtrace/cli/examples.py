"""The examples that stand under each command's help and in docs/cli.md. A test runs every line of them."""

from __future__ import annotations

__all__ = ["EXAMPLES", "epilog"]

EXAMPLES: dict[str, tuple[str, ...]] = {
    "collect": (
        "ragtrace collect traces.duckdb",
        "ragtrace collect traces.duckdb --host 0.0.0.0 --token-file token.txt --run hybrid-k50",
        "ragtrace collect traces.duckdb --forward http://127.0.0.1:6006/v1/traces",
        "ragtrace collect traces.duckdb --file spans.jsonl --mapping ours.toml",
    ),
    "report": (
        "ragtrace report traces.duckdb",
        "ragtrace report traces.duckdb --run hybrid-k50 --by kind",
        "ragtrace report traces.duckdb --format json > report.json",
    ),
    "why": (
        "ragtrace why traces.duckdb q-017",
        'ragtrace why traces.duckdb "how long may a visitor stay?" --all',
        'ragtrace why traces.duckdb "how long may a visitor stay?" --quote "Visitors may stay for 90 days"',
    ),
    "probe": (
        "ragtrace probe traces.duckdb --with service:retrievers",
        "ragtrace probe traces.duckdb --with service:retrievers --run hybrid-k50 --limit 500 --seconds 60",
    ),
    "whatif": (
        "ragtrace whatif traces.duckdb",
        'ragtrace whatif traces.duckdb --stage "cross encoder"',
        "ragtrace whatif traces.duckdb --run hybrid-k50 --format csv > changes.csv",
    ),
    "metrics": (
        "ragtrace metrics traces.duckdb",
        "ragtrace metrics traces.duckdb -k 5 -k 20 --stage dense",
        "ragtrace metrics traces.duckdb --unit document --format json",
    ),
    "compare": (
        "ragtrace compare traces.duckdb hybrid-k50 hybrid-k100",
        "ragtrace compare traces.duckdb hybrid-k50 hybrid-k100 --format json",
    ),
    "gold load": (
        "ragtrace gold load traces.duckdb gold.jsonl",
        "ragtrace gold load traces.duckdb gold.jsonl --skip-bad --min-coverage 0.75",
    ),
    "gold check": ("ragtrace gold check traces.duckdb",),
    "gold status": ("ragtrace gold status traces.duckdb",),
    "sql": (
        'ragtrace sql traces.duckdb "select * from recall_summary"',
        'ragtrace sql traces.duckdb "select run, stage, recall_out from stage_recall" --format csv > recall.csv',
    ),
    "queries": (
        "ragtrace queries",
        "ragtrace queries losses",
        "ragtrace queries losses traces.duckdb --param run=hybrid-k50 --format json",
    ),
    "merge": ("ragtrace merge traces.duckdb", "ragtrace merge traces.duckdb --lake lake"),
    "doctor": (
        "ragtrace doctor traces.duckdb",
        "ragtrace doctor traces.duckdb --delete-before 90d --dry-run",
        "ragtrace doctor traces.duckdb --delete-before 90d --compact",
    ),
    "export": (
        "ragtrace export traces.duckdb lake",
        "ragtrace export traces.duckdb trec --to trec",
        "ragtrace export traces.duckdb contexts.jsonl --to jsonl --run hybrid-k50",
        "ragtrace export traces.duckdb samples.jsonl --to ragas",
        "ragtrace export traces.duckdb goldens.jsonl --to deepeval --run hybrid-k50",
    ),
    "demo": ("ragtrace demo demo.duckdb",),
}


def epilog(command: str) -> str:
    """The examples of one command as the end of its help. Raises: KeyError for a command without any."""
    lines = "\n".join(f"  {line}" for line in EXAMPLES[command])
    return f"\b\nExamples:\n{lines}"  # \b keeps the lines as they are
