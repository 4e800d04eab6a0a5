"""Tracing products beside ragtrace: one retrieve call of each, in an environment of its own. `python -m benchmarks.beside`.

Each is installed from the registry into a virtual environment under the cache folder, told to send nothing anywhere, and
measured beside bare OpenTelemetry spans of that environment in the same rounds. What cannot be installed or run is said.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Options, Row, main

__all__ = ["PEERS", "installed", "rows"]

PEERS = {
    "OpenTelemetry SDK, two array attributes": ("otel_sdk", "opentelemetry-sdk"),
    "OpenInference": ("openinference_sdk", "openinference-instrumentation opentelemetry-sdk"),
    "Traceloop": ("traceloop_sdk", "traceloop-sdk httpx"),
    "Langfuse": ("langfuse_sdk", "langfuse"),
    "Logfire": ("logfire_sdk", "logfire"),
    "MLflow": ("mlflow_tracing", "mlflow-tracing"),
}
INSTALL_S = 600
RUN_S = 120
SCRIPTS = Path(__file__).parent / "peers"


def installed(cache: Path, name: str, packages: str) -> Path:
    """The interpreter of a peer's environment, made on first use.

    Raises: subprocess.SubprocessError when it cannot be installed.
    """
    folder = cache / name
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True)
        # uv resolves in seconds what takes pip half an hour: Traceloop pins forty packages of its own.
        for command in (
            ["pip", "install", "--quiet", "uv"],
            ["uv", "pip", "install", "--python", str(python), *packages.split()],
        ):
            subprocess.run(
                [str(python), "-m", *command],
                check=True,
                timeout=INSTALL_S,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        (folder / "ready").touch()
    return python


def rows(options: Options) -> Iterator[Row]:
    """The cost of one call of each, as a ratio to a bare span."""
    for product, (name, packages) in PEERS.items():
        try:
            python = installed(options.cache, name, packages)
            command = [str(python), str(SCRIPTS / f"{name}.py"), str(options.scaled(100, 20))]
            done = subprocess.run(
                command, check=True, timeout=RUN_S, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            found = json.loads(done.stdout.splitlines()[-1])
        except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
            print(f"{product} is left out: {type(error).__name__} while it was installed or run", file=sys.stderr)
            continue
        for n in ("100", "1000"):
            note = f"{found[n]:,.0f} µs, version {found['version']}"
            yield Row(f"{int(n):,} candidates, {product}", found[n] / found["span"], "× a bare span", note=note)


if __name__ == "__main__":
    sys.exit(main(rows))
