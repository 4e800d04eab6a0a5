"""`rt.instrument` itself: names, versions, and that nothing is loaded before it is asked for."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

import ragtrace as rt
from ragtrace.errors import ConfigurationError
from ragtrace.integrations import door


@pytest.mark.parametrize("call", [rt.instrument, rt.uninstrument])
def test_an_unknown_framework_is_named_beside_the_known_ones(call: object) -> None:
    with pytest.raises(ConfigurationError, match=r"instrument knows langchain.*, not 'semantic-kernel'"):
        call("semantic-kernel")  # type: ignore[operator]


@pytest.mark.parametrize("name", door.FRAMEWORKS)
def test_a_framework_that_is_not_installed_is_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(distribution: str) -> str:
        raise metadata.PackageNotFoundError(distribution)

    monkeypatch.setattr(door.metadata, "version", missing)
    with pytest.raises(
        ConfigurationError, match=rf'instrument\("{name}"\) needs .* which is not installed: pip install'
    ):
        rt.instrument(name)


@pytest.mark.parametrize("name", door.FRAMEWORKS)
@pytest.mark.parametrize("version", ["0.0.1", "99.0"])
def test_a_version_that_was_not_tried_is_refused(name: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door.metadata, "version", lambda distribution: version)
    with pytest.raises(ConfigurationError, match=rf"was tried with .* not with {version}"):
        rt.instrument(name)
    monkeypatch.undo()
    rt.uninstrument(name)  # nothing was done, so there is nothing to undo


def test_no_framework_and_no_module_of_ours_for_one_is_loaded_with_ragtrace() -> None:
    code = (
        "import sys, ragtrace as rt; assert 'ragtrace.integrations' not in sys.modules; rt.instrument; "
        "print(sorted(set(sys.modules) & {'langchain_core', 'llama_index', 'haystack', 'ragtrace.integrations.langchain'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
