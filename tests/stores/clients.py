"""The stores of docs/vector-stores.md, each with the same four chunks, under the names that the page's lines use."""

from __future__ import annotations

import contextlib
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

TEXTS = ("four words of text", "of which this is", "the second and third", "and this the last")
VECTORS = np.array([[1, 0, 0, 0], [0.9, 0.1, 0, 0], [0.5, 0.5, 0, 0], [0, 1, 0, 0]], dtype="float32")
FIELDS = [
    {"text": text, "doc_id": "handbook.md", "start": 20 * row, "end": 20 * row + len(text)}
    for row, text in enumerate(TEXTS)
]

Names = dict[str, Any]
Make = Callable[[Path], contextlib.AbstractContextManager[Names]]


def embed(question: str) -> Any:
    """The first chunk's vector, whatever is asked."""
    return VECTORS[0]


def client_of(module: str) -> Any:
    """A client's module; skips when it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever the clients' own imports warn of
        return pytest.importorskip(module, reason=f"{module} is not installed: pip install '.[stores]'")


@contextlib.contextmanager
def faiss(folder: Path, metric: str = "L2") -> Iterator[Names]:
    library = client_of("faiss")
    index = library.IndexFlatL2(4) if metric == "L2" else library.IndexFlatIP(4)
    index.add(VECTORS)
    yield {"index": index}


@contextlib.contextmanager
def hnswlib(folder: Path, space: str = "cosine") -> Iterator[Names]:
    index = client_of("hnswlib").Index(space, 4)
    index.init_index(10)
    index.add_items(VECTORS)
    yield {"index": index}


@contextlib.contextmanager
def qdrant(folder: Path, metric: str = "COSINE") -> Iterator[Names]:
    library = client_of("qdrant_client")
    models = library.models
    client = library.QdrantClient(":memory:")
    client.create_collection("handbook", models.VectorParams(size=4, distance=models.Distance[metric]))
    client.upsert(
        "handbook",
        [models.PointStruct(id=row, vector=VECTORS[row].tolist(), payload=FIELDS[row]) for row in range(4)],
    )
    yield {"client": client}
    client.close()


@contextlib.contextmanager
def chroma(folder: Path, space: str = "cosine") -> Iterator[Names]:
    library = client_of("chromadb")
    client = library.EphemeralClient(library.Settings(anonymized_telemetry=False))
    name = f"handbook-{uuid.uuid4()}"  # ephemeral clients of one process share their collections
    collection = client.create_collection(name, configuration={"hnsw": {"space": space}})
    collection.add(
        ids=[str(row) for row in range(4)],
        embeddings=VECTORS,
        documents=list(TEXTS),
        metadatas=[{name: value for name, value in fields.items() if name != "text"} for fields in FIELDS],
    )
    yield {"collection": collection}
    client.delete_collection(name)


@contextlib.contextmanager
def lancedb(folder: Path) -> Iterator[Names]:
    database = client_of("lancedb").connect(folder / "lance")
    rows = [{"id": str(row), "vector": VECTORS[row].tolist(), **fields} for row, fields in enumerate(FIELDS)]
    yield {"table": database.create_table("handbook", rows)}


@contextlib.contextmanager
def _postgres(folder: Path) -> Iterator[str]:
    folder.mkdir(exist_ok=True)
    server = client_of("pgserver").get_server(folder / "postgres")
    try:
        with client_of("psycopg").connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("create extension vector")
            connection.execute(
                'create table chunks (id text primary key, doc_id text, "start" int, "end" int, text text, embedding vector(4))'
            )
            for row, fields in enumerate(FIELDS):
                connection.execute(
                    "insert into chunks values (%s, %s, %s, %s, %s, %s)",
                    [
                        str(row),
                        fields["doc_id"],
                        fields["start"],
                        fields["end"],
                        fields["text"],
                        str(VECTORS[row].tolist()),
                    ],
                )
        yield server.get_uri()
    finally:
        server.cleanup()


@contextlib.contextmanager
def psycopg(folder: Path) -> Iterator[Names]:
    library = client_of("psycopg")
    with _postgres(folder) as address, library.connect(address) as connection:
        yield {"connection": connection}


@contextlib.contextmanager
def sqlalchemy(folder: Path) -> Iterator[Names]:
    library, types = client_of("sqlalchemy"), client_of("pgvector.sqlalchemy")
    orm = client_of("sqlalchemy.orm")

    base = orm.declarative_base()
    columns = {name: library.Column(library.Text) for name in ("doc_id", "text")}
    columns |= {name: library.Column(library.Integer) for name in ("start", "end")}
    key = library.Column(library.Text, primary_key=True)
    chunk = type(
        "Chunk",
        (base,),
        {"__tablename__": "chunks", "id": key, "embedding": library.Column(types.Vector(4)), **columns},
    )
    with _postgres(folder) as address:
        engine = library.create_engine(address.replace("postgresql://", "postgresql+psycopg://"))
        with orm.Session(engine) as session:
            yield {"session": session, "Chunk": chunk, "select": library.select}
        engine.dispose()


@contextlib.contextmanager
def milvus(folder: Path, metric: str = "COSINE") -> Iterator[Names]:
    client_of("milvus_lite")
    client = client_of("pymilvus").MilvusClient(str(folder / "milvus.db"))
    client.create_collection("handbook", dimension=4, metric_type=metric)
    client.insert("handbook", [{"id": row, "vector": VECTORS[row].tolist(), **FIELDS[row]} for row in range(4)])
    yield {"client": client}
    client.close()


def weaviate_objects(**scores: list[float]) -> Any:
    """What a search returns, made of the client's own classes."""
    classes = client_of("weaviate.collections.classes.internal")
    return classes.QueryReturn(
        objects=[
            classes.Object(
                uuid=uuid.UUID(int=row),
                metadata=classes.MetadataReturn(**{name: values[row] for name, values in scores.items()}),
                properties={"chunk_id": str(row), **FIELDS[row]},
                references=None,
                vector={},
                collection="Handbook",
            )
            for row in range(3)
        ]
    )


@contextlib.contextmanager
def weaviate(folder: Path) -> Iterator[Names]:
    found = weaviate_objects(distance=[0.0, 0.1, 0.3])
    yield {"collection": SimpleNamespace(query=SimpleNamespace(near_vector=lambda *_, **__: found))}


def search_body() -> dict[str, Any]:
    """The JSON that both search engines answer with."""
    hits = [
        {"_index": "handbook", "_id": str(row), "_score": 3.5 - row, "_source": dict(FIELDS[row])} for row in range(3)
    ]
    total = {"value": 3, "relation": "eq"}
    return {
        "took": 1, "timed_out": False, "_shards": {"total": 1, "successful": 1},
        "hits": {"total": total, "max_score": 3.5, "hits": hits},
    }  # fmt: skip


@contextlib.contextmanager
def elasticsearch(folder: Path) -> Iterator[Names]:
    transport = client_of("elastic_transport")
    client_of("elasticsearch")
    node = transport.NodeConfig("http", "localhost", 9200)
    meta = transport.ApiResponseMeta(200, "1.1", transport.HttpHeaders(), 0.01, node)
    response = transport.ObjectApiResponse(body=search_body(), meta=meta)
    yield {"client": SimpleNamespace(search=lambda **_: response)}


@contextlib.contextmanager
def opensearch(folder: Path) -> Iterator[Names]:
    library = client_of("opensearchpy")
    client = library.OpenSearch("http://localhost:9200")
    client.transport.perform_request = lambda *_, **__: search_body()
    yield {"client": client}


STORES: dict[str, tuple[Make, str | None]] = {
    "FAISS": (faiss, "distance"),
    "hnswlib": (hnswlib, "distance"),
    "Qdrant": (qdrant, "similarity"),
    "Chroma": (chroma, "distance"),
    "LanceDB": (lancedb, "distance"),
    "pgvector with psycopg": (psycopg, "distance"),
    "pgvector with SQLAlchemy": (sqlalchemy, "distance"),
    "Milvus": (milvus, "similarity"),
    "Weaviate": (weaviate, "distance"),
    "Elasticsearch": (elasticsearch, None),
    "OpenSearch": (opensearch, None),
}
"""By the headings of the page: how to have one, and the kind of its scores."""

IN_FULL = frozenset(("pgvector with psycopg", "pgvector with SQLAlchemy", "Milvus"))
"""Those that start a server, which takes seconds."""
