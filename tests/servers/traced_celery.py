"""A Celery service over a broker of files: the worker is configured when it is loaded, before it forks."""

from __future__ import annotations

import os

from celery import Celery

import ragtrace as rt

_FOLDER = os.environ["BROKER_FOLDER"]

app = Celery("traced", broker="filesystem://")
app.conf.update(
    broker_transport_options={
        "data_folder_in": _FOLDER,
        "data_folder_out": _FOLDER,
        "control_folder": os.path.join(_FOLDER, "control"),
        "polling_interval": 0.05,
    },
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
)

if os.environ.get("RAGTRACE_STORE"):
    rt.configure()


@rt.retrieve
def dense(query: str) -> list[str]:
    return ["a", "b"]


@app.task
def answer(question: str) -> None:
    with rt.query(question):
        dense(question)
