"""`ragtrace probe`: ask the retrievers again for what was lost, so that `why` can name the reason."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragtrace.cli.opening import StoreArgument, must_exist
from ragtrace.cli.output import Format, FormatOption, note, print_values, progress

if TYPE_CHECKING:
    from ragtrace.probes.retrievers import Retriever
    from ragtrace.probes.stored import Probed

__all__ = ["probe"]

_FAILED = 3

_WHY_SKIPPED = {
    "not_registered": "no retriever is registered under the stage's name",
    "query_not_captured": "what they were asked was not captured (capture_text), or redacted",
    "asked_before": "all that can be asked of them was asked before",
    "filter_not_captured": "their filter was not captured as it was given",
}


def probe(
    store: StoreArgument,
    with_: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="MODULE:OBJECT",
            help="Retrievers to ask: one, several, or a function that returns them; the module may also register them.",
            show_default=False,
        ),
    ],
    *,
    run: Annotated[str | None, typer.Option(help="Only queries of this run.", show_default=False)] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many calls.", min=1, show_default=False)] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Begin no call after so many seconds.", min=0, show_default=False)
    ] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Ask the retrievers again for the evidence that was lost without proof of why, and record what they answer.

    Exact search, a deeper one, without the filter, by the question as asked, by id: as far as the retriever can. Under the
    same filter and of the same index only; what another state of the index answers proves nothing. Newest queries first.
    Exit code 3 says that every call failed.
    """
    from ragtrace.probes.door import probe as door

    must_exist(store)
    retrievers = _retrievers(with_)
    with progress() as show:
        probed = door(store, retrievers, run=run, n_calls=limit, seconds=seconds, progress=show)
    if format is Format.TABLE:
        _say(probed, store)
    else:
        sums = {"void": sum(probed.void.values()), "skipped": sum(probed.skipped.values())}
        failures = probed.failures if format is Format.JSON else "; ".join(_failures(probed))
        print_values({**probed._asdict(), **sums, "failures": failures}, format)
    if probed.n_calls and probed.n_failed == probed.n_calls:
        raise typer.Exit(_FAILED)


def _say(probed: Probed, store: Path) -> None:
    from ragtrace.reports.words import VOIDS, counted

    typer.echo(
        f"{probed.n_asked:,} of {counted(probed.n_targets, 'retrieve run')} that missed evidence "
        f"{'was' if probed.n_asked == 1 else 'were'} asked again, in {counted(probed.n_calls, 'call')}."
    )
    proved = (
        f"{counted(probed.n_proved, 'loss')} {_have(probed.n_proved)}" if probed.n_proved else "No further loss has"
    )
    typer.echo(f"{proved} a proof now, {probed.n_unproved:,} still {_have(probed.n_unproved)} none.")
    for failure in _failures(probed):
        note(failure)
    for why, n in sorted(probed.void.items()):
        note(f"{counted(n, 'answer')} {'counts' if n == 1 else 'count'} for nothing: {VOIDS.get(why, why)}")
    for why, n in sorted(probed.skipped.items()):
        note(f"{n:,} {'was' if n == 1 else 'were'} not asked: {_WHY_SKIPPED.get(why, why)}")
    if probed.is_cut_short:
        note("the budget was used up first; the same command goes on where this one stopped")
    typer.echo(f"Try: ragtrace report {store}")


def _have(n: int) -> str:
    return "has" if n == 1 else "have"


def _failures(probed: Probed) -> list[str]:
    from ragtrace.reports.render import visible

    return [
        f"{visible(said)}{f', {n:,} times' if n > 1 else ''}"
        for said, n in sorted(probed.failures.items(), key=lambda item: (-item[1], item[0]))
    ]


def _retrievers(named: str) -> Iterable[Retriever]:
    """What `module:object` gives. Raises: ConfigurationError."""
    from ragtrace.errors import ConfigurationError
    from ragtrace.probes.door import probe as door
    from ragtrace.probes.retrievers import Retriever, Retrievers

    given = _loaded(named)
    if callable(given) and not isinstance(given, Retriever):
        given = given()
    if isinstance(given, Retriever):
        return [given]
    if isinstance(given, Retrievers):
        return given
    found = list(given) if isinstance(given, Iterable) and not isinstance(given, (str, bytes)) else []
    if found and all(isinstance(one, Retriever) for one in found):
        return found
    if door.retrievers:
        return door.retrievers  # it registered them itself
    raise ConfigurationError(
        f"--with {named} gives no retriever: it must be one, several, or a function that returns them", object=named
    )


def _loaded(named: str) -> Any:
    from importlib import import_module

    from ragtrace.errors import ConfigurationError

    module_name, _, attribute = named.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(
            0, str(Path.cwd())
        )  # like `python -m`: the service's own modules are where the command is given
    try:
        found: Any = import_module(module_name)
        for part in attribute.split(".") if attribute else ():
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"--with must be module:object, and {named!r} cannot be loaded ({type(error).__name__}: {error})",
            object=named,
        ) from error
    return found
