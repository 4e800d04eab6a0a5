"""Real indexes over the planted corpus. Each is imported where it is made: most are only there for the full tests."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.unit.probes.planted import CHUNKS, DIMENSIONS, Filter, Hits, Index, vector

__all__ = ["DEFAULT", "FULL", "Make"]

Make = Callable[[Path], contextlib.AbstractContextManager[Index]]

NUMBERS = {chunk.id: number for number, chunk in enumerate(CHUNKS)}
VECTORS = np.stack([vector(chunk.text) for chunk in CHUNKS])


def _allowed(filter: Filter) -> np.ndarray:
    return np.array([n for n, chunk in enumerate(CHUNKS) if filter is None or chunk.lang == filter["lang"]])


def _over_all(query: str, k: int, filter: Filter, deleted: set[str]) -> Hits:
    """By hand: what every index must agree with that looks at all vectors."""
    scores = VECTORS @ vector(query)
    order = [n for n in np.argsort(-scores) if n in set(_allowed(filter)) and CHUNKS[n].id not in deleted]
    return [(CHUNKS[n].id, float(scores[n])) for n in order[:k]]


class FaissIndex:
    """A FAISS index beside a flat one; ids through IndexIDMap2, so that they can be asked for and removed."""

    mode = "ann"

    def __init__(self, made: Any, parameters: Callable[..., Any], *, is_approximate: bool, lacks: str | None) -> None:
        import faiss

        self._faiss = faiss
        self._parameters = parameters
        self.is_approximate = is_approximate
        numbers = np.array([n for n, chunk in enumerate(CHUNKS) if chunk.id != lacks])
        faiss.omp_set_num_threads(1)
        if not made.is_trained:
            made.train(VECTORS)
        self._index = faiss.IndexIDMap2(made)
        self._index.add_with_ids(VECTORS[numbers], numbers)
        self._flat = faiss.IndexIDMap2(faiss.IndexFlatIP(DIMENSIONS))
        self._flat.add_with_ids(VECTORS[numbers], numbers)

    def search(self, query: str, k: int, filter: Filter, /) -> Hits:
        return self._found(self._index, query, k, self._parameters(self._selector(filter)))

    def exact(self, query: str, k: int, filter: Filter, /) -> Hits:
        return self._found(self._flat, query, k, self._faiss.SearchParameters(sel=self._selector(filter)))

    def get(self, ids: Sequence[str], /) -> list[str]:
        there = set(self._faiss.vector_to_array(self._index.id_map).tolist())
        return [name for name in ids if NUMBERS.get(name) in there]

    def delete(self, chunk_id: str, /) -> None:
        if chunk_id not in self.get([chunk_id]):
            return  # never added: a graph cannot be removed from
        number = np.array([NUMBERS[chunk_id]])
        self._index.remove_ids(number)
        self._flat.remove_ids(number)

    def _selector(self, filter: Filter) -> Any:
        return self._faiss.IDSelectorBatch(_allowed(filter))

    @staticmethod
    def _found(index: Any, query: str, k: int, parameters: Any) -> Hits:
        scores, numbers = index.search(vector(query)[None], min(k, len(CHUNKS)), params=parameters)
        return [(CHUNKS[n].id, float(s)) for n, s in zip(numbers[0], scores[0], strict=True) if n >= 0]


@contextlib.contextmanager
def faiss_flat(folder: Path) -> Iterator[Index]:
    import faiss

    yield FaissIndex(
        faiss.IndexFlatIP(DIMENSIONS), lambda sel: faiss.SearchParameters(sel=sel), is_approximate=False, lacks=None
    )


@contextlib.contextmanager
def faiss_hnsw(folder: Path) -> Iterator[Index]:
    import faiss

    graph = faiss.IndexHNSWFlat(DIMENSIONS, 4, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 4
    yield FaissIndex(
        graph, lambda sel: faiss.SearchParametersHNSW(sel=sel, efSearch=2), is_approximate=True, lacks=CHUNKS[17].id
    )


@contextlib.contextmanager
def faiss_ivf(folder: Path) -> Iterator[Index]:
    import faiss

    coarse = faiss.IndexFlatIP(DIMENSIONS)
    lists = faiss.IndexIVFFlat(coarse, DIMENSIONS, 16, faiss.METRIC_INNER_PRODUCT)
    index = FaissIndex(lists, lambda sel: faiss.SearchParametersIVF(sel=sel, nprobe=1), is_approximate=True, lacks=None)
    yield index


class LexicalIndex:
    """BM25 by bm25s: every passage is looked at, so only a deeper search is needed."""

    mode = "lexical"
    is_approximate = False

    def __init__(self) -> None:
        import bm25s

        self._bm25 = bm25s.BM25()
        self._bm25.index([chunk.text.split() for chunk in CHUNKS], show_progress=False)
        self._there = np.ones(len(CHUNKS))

    def search(self, query: str, k: int, filter: Filter, /) -> Hits:
        mask = np.zeros(len(CHUNKS))
        mask[_allowed(filter)] = 1
        terms = [word for word in query.split() if word in self._bm25.vocab_dict]
        numbers, scores = self._bm25.retrieve(
            [terms], k=min(k, len(CHUNKS)), weight_mask=mask * self._there, show_progress=False
        )
        return [(CHUNKS[n].id, float(s)) for n, s in zip(numbers[0], scores[0], strict=True) if s > 0]

    exact = search

    def get(self, ids: Sequence[str], /) -> list[str]:
        return [name for name in ids if self._there[NUMBERS[name]]]

    def delete(self, chunk_id: str, /) -> None:
        self._there[NUMBERS[chunk_id]] = 0


@contextlib.contextmanager
def lexical(folder: Path) -> Iterator[Index]:
    yield LexicalIndex()


class HnswlibIndex:
    """A graph by hnswlib; exact by its brute-force index."""

    mode = "ann"
    is_approximate = True

    def __init__(self) -> None:
        import hnswlib

        self._graph = hnswlib.Index(space="ip", dim=DIMENSIONS)
        self._graph.init_index(max_elements=len(CHUNKS), ef_construction=4, M=2)
        self._graph.set_num_threads(1)
        self._graph.add_items(VECTORS, np.arange(len(CHUNKS)))
        self._flat = hnswlib.BFIndex(space="ip", dim=DIMENSIONS)
        self._flat.init_index(max_elements=len(CHUNKS))
        self._flat.add_items(VECTORS, np.arange(len(CHUNKS)))
        self._deleted: set[int] = set()

    def search(self, query: str, k: int, filter: Filter, /) -> Hits:
        # ef is k where it is less: a deeper search is a better one too.
        self._graph.set_ef(k)
        return self._found(self._graph, query, k, filter)

    def exact(self, query: str, k: int, filter: Filter, /) -> Hits:
        return self._found(self._flat, query, k, filter)

    def get(self, ids: Sequence[str], /) -> list[str]:
        there = set(self._graph.get_ids_list()) - self._deleted
        return [name for name in ids if NUMBERS[name] in there]

    def delete(self, chunk_id: str, /) -> None:
        number = NUMBERS[chunk_id]
        self._graph.mark_deleted(number)
        self._flat.delete_vector(number)
        self._deleted.add(number)

    def _found(self, index: Any, query: str, k: int, filter: Filter) -> Hits:
        allowed = set(_allowed(filter).tolist()) - self._deleted
        numbers, distances = None, None
        for n in range(min(k, len(allowed)), 0, -1):
            try:
                numbers, distances = index.knn_query(vector(query)[None], k=n, filter=lambda label: label in allowed)
                break
            except RuntimeError:  # it met fewer than n: hnswlib then gives nothing at all
                continue
        if numbers is None or distances is None:
            return []
        return [(CHUNKS[int(n)].id, 1 - float(d)) for n, d in zip(numbers[0], distances[0], strict=True)]


@contextlib.contextmanager
def hnswlib_graph(folder: Path) -> Iterator[Index]:
    yield HnswlibIndex()


class QdrantIndex:
    """Qdrant inside the process: it looks at every vector, so nothing is missed."""

    mode = "ann"
    is_approximate = False

    def __init__(self) -> None:
        from qdrant_client import QdrantClient, models

        self._models = models
        self._client = QdrantClient(":memory:")
        self._client.create_collection("chunks", models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE))
        self._client.upsert(
            "chunks",
            [
                models.PointStruct(id=n, vector=VECTORS[n].tolist(), payload={"chunk_id": chunk.id, "lang": chunk.lang})
                for n, chunk in enumerate(CHUNKS)
            ],
        )

    def get(self, ids: Sequence[str], /) -> list[str]:
        found = self._client.retrieve("chunks", [NUMBERS[name] for name in ids])
        return [(point.payload or {})["chunk_id"] for point in found]

    def delete(self, chunk_id: str, /) -> None:
        self._client.delete("chunks", self._models.PointIdsList(points=[NUMBERS[chunk_id]]))

    def search(self, query: str, k: int, filter: Filter, /) -> Hits:
        models = self._models
        wanted = None
        if filter is not None:
            match = models.MatchValue(value=filter["lang"])
            wanted = models.Filter(must=[models.FieldCondition(key="lang", match=match)])
        found = self._client.query_points("chunks", query=vector(query).tolist(), limit=k, query_filter=wanted)
        return [((point.payload or {})["chunk_id"], point.score) for point in found.points]

    # A server would be asked with SearchParams(exact=True); inside the process that is all there is.
    exact = search


@contextlib.contextmanager
def qdrant(folder: Path) -> Iterator[Index]:
    index = QdrantIndex()
    yield index
    index._client.close()


class ChromaIndex:
    """Chroma inside the process, its graph crippled; exact by the embeddings it gives back."""

    mode = "ann"
    is_approximate = True

    def __init__(self, folder: Path) -> None:
        import chromadb

        self._client = chromadb.PersistentClient(
            str(folder / "chroma"), settings=chromadb.Settings(anonymized_telemetry=False)
        )
        self._chunks = self._client.create_collection(
            "chunks",
            configuration={
                "hnsw": {"space": "ip", "ef_construction": 2, "ef_search": 1, "max_neighbors": 2, "num_threads": 1}
            },
        )
        self._chunks.add(
            ids=[chunk.id for chunk in CHUNKS], embeddings=VECTORS, metadatas=[{"lang": chunk.lang} for chunk in CHUNKS]
        )

    def search(self, query: str, k: int, filter: Filter, /) -> Hits:
        found = self._chunks.query(query_embeddings=[vector(query)], n_results=min(k, len(CHUNKS)), where=filter)
        return [
            (name, 1 - float(distance))
            for name, distance in zip(found["ids"][0], (found["distances"] or [[]])[0], strict=True)
        ]

    def exact(self, query: str, k: int, filter: Filter, /) -> Hits:
        there = self._chunks.get(where=filter, include=["embeddings"])
        scores = np.asarray(there["embeddings"]) @ vector(query)
        return [(there["ids"][n], float(scores[n])) for n in np.argsort(-scores)[:k]]

    def get(self, ids: Sequence[str], /) -> list[str]:
        return list(self._chunks.get(ids=list(ids))["ids"])

    def delete(self, chunk_id: str, /) -> None:
        self._chunks.delete(ids=[chunk_id])


@contextlib.contextmanager
def chroma(folder: Path) -> Iterator[Index]:
    yield ChromaIndex(folder)


class PgvectorIndex:
    """pgvector in a real PostgreSQL: the same statement with the index, and with it switched off."""

    mode = "ann"
    is_approximate = True

    def __init__(self, uri: str) -> None:
        import psycopg

        # A prepared statement keeps the plan it was made with, whatever is switched off later.
        self._connection = psycopg.connect(uri, autocommit=True, prepare_threshold=None)
        run = self._connection.execute
        run("create extension if not exists vector")
        run(
            f"create table chunks (id text primary key, lang text, embedding vector({DIMENSIONS})) with (autovacuum_enabled = off)"
        )
        with self._connection.cursor() as cursor:
            cursor.executemany(
                "insert into chunks values (%s, %s, %s)",
                [(chunk.id, chunk.lang, str(VECTORS[n].tolist())) for n, chunk in enumerate(CHUNKS)],
            )
        run("create index on chunks using hnsw (embedding vector_cosine_ops) with (m = 2, ef_construction = 4)")
        run("analyze chunks")

    def search(self, query: str, k: int, filter: Filter, /) -> Hits:
        return self._found(query, k, filter, ("enable_seqscan = off", "hnsw.ef_search = 1"))

    def exact(self, query: str, k: int, filter: Filter, /) -> Hits:
        return self._found(query, k, filter, ("enable_indexscan = off", "enable_seqscan = on"))

    def get(self, ids: Sequence[str], /) -> list[str]:
        return [row[0] for row in self._connection.execute("select id from chunks where id = any(%s)", [list(ids)])]

    def delete(self, chunk_id: str, /) -> None:
        self._connection.execute("delete from chunks where id = %s", [chunk_id])
        # The graph is mended now and not at some later moment, when the same search would answer otherwise.
        self._connection.execute("vacuum chunks")

    def close(self) -> None:
        self._connection.close()

    def _found(self, query: str, k: int, filter: Filter, settings: Sequence[str]) -> Hits:
        asked = str(vector(query).tolist())
        with self._connection.transaction():
            for setting in settings:
                self._connection.execute(f"set local {setting}")
            found = self._connection.execute(
                "select id, 1 - (embedding <=> %s::vector) from chunks where %s::text is null or lang = %s "
                "order by embedding <=> %s::vector limit %s",
                [
                    asked,
                    None if filter is None else filter["lang"],
                    None if filter is None else filter["lang"],
                    asked,
                    k,
                ],
            )
            return [(name, float(score)) for name, score in found.fetchall()]


@contextlib.contextmanager
def pgvector(folder: Path) -> Iterator[Index]:
    with warnings.catch_warnings():
        # Where no login session has made a runtime folder, a library below it warns that it takes another.
        warnings.simplefilter("ignore")
        import pgserver

    folder.mkdir(parents=True, exist_ok=True)
    server = pgserver.get_server(folder / "postgres")
    try:
        index = PgvectorIndex(server.get_uri())
        yield index
        index.close()
    finally:
        server.cleanup()


DEFAULT: dict[str, Make] = {
    "faiss flat": faiss_flat, "faiss hnsw": faiss_hnsw, "faiss ivf": faiss_ivf, "bm25s": lexical
}  # fmt: skip
"""Quick enough for every run."""

FULL: dict[str, Make] = {"hnswlib": hnswlib_graph, "qdrant": qdrant, "chroma": chroma, "pgvector": pgvector}
