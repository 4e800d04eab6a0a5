"""The Langfuse SDK's observations of type retriever and generation."""

import sys

from langfuse import Langfuse
from zoo import PROMPT, QUESTION, RETRIEVED

client = Langfuse(public_key="pk-zoo", secret_key="sk-zoo", host=sys.argv[1])
with client.start_as_current_observation(name="answer", as_type="chain", input={"question": QUESTION}):
    with client.start_as_current_observation(name="dense", as_type="retriever", input=QUESTION) as found:
        found.update(output=RETRIEVED)
    with client.start_as_current_observation(
        name="rerank", as_type="span", input={"query": QUESTION, "documents": RETRIEVED}
    ) as ranked:
        ranked.update(output=RETRIEVED[:3])
    with client.start_as_current_observation(
        name="model", as_type="generation", input=[{"role": "user", "content": PROMPT}]
    ) as said:
        said.update(output="six apples")
client.flush()
