"""How a served model wants to be asked: what stands before a question and before a passage, how long, how many numbers.

A model trained with such words finds less without them, so they belong to what the model is: with other ones its
vectors are another space. The facts are those of the models' own cards.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from outcrop.core.model import Space
from outcrop.errors import BadConfig

# What a model that is not in the table is taken to read: no embedding model of the last years reads less.
UNKNOWN_TOKENS = 512


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """One way to use a model.

    Attributes:
        query: Put before a question.
        passage: Put before a text to be found.
        dim: Length of its vectors; None where it is not known.
        max_tokens: How much of a text it reads.
        shortens: Whether it can be asked for shorter vectors.
    """

    query: str = ""
    passage: str = ""
    dim: int | None = None
    max_tokens: int = UNKNOWN_TOKENS
    shortens: bool = False


_NOMIC = ModelProfile("search_query: ", "search_document: ", 768, 2048, shortens=True)
_REPRESENT = "Represent this sentence for searching relevant passages: "
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

_KNOWN: tuple[tuple[str, ModelProfile], ...] = (
    (r"nomic-embed-text-v2-moe", replace(_NOMIC, max_tokens=512)),
    (r"nomic-embed-text(-v1|:v1)", replace(_NOMIC, shortens=False)),
    (r"nomic-embed-text((-v1\.5|:v1\.5|:137m-v1\.5).*)?", _NOMIC),
    (r"mxbai-embed-large(-v1|:.*)?", ModelProfile(_REPRESENT, "", 1024, 512, shortens=True)),
    (r"all-minilm(:.*)?|all-minilm-l(6|12)-v[12]", ModelProfile("", "", 384, 256)),
    (r"bge-small-en-v1\.5", ModelProfile(_REPRESENT, "", 384, 512)),
    (r"bge-base-en-v1\.5", ModelProfile(_REPRESENT, "", 768, 512)),
    (r"bge-large(-en-v1\.5|:.*)?", ModelProfile(_REPRESENT, "", 1024, 512)),
    (r"bge-m3(:.*)?", ModelProfile("", "", 1024, 8192)),
    (
        r"snowflake-arctic-embed2(:.*)?|snowflake-arctic-embed-l-v2\.0",
        ModelProfile("query: ", "", 1024, 8192, shortens=True),
    ),
    (r"multilingual-e5-small|e5-small-v2", ModelProfile("query: ", "passage: ", 384, 512)),
    (r"multilingual-e5-base|e5-base-v2", ModelProfile("query: ", "passage: ", 768, 512)),
    (r"multilingual-e5-large|e5-large-v2", ModelProfile("query: ", "passage: ", 1024, 512)),
    (
        r"embeddinggemma(-300m|:.*)?",
        ModelProfile("task: search result | query: ", "title: none | text: ", 768, 2048, shortens=True),
    ),
    (r"qwen3-embedding[-:]0\.6b.*", ModelProfile(_INSTRUCT, "", 1024, 8192, shortens=True)),
    (r"qwen3-embedding[-:]4b.*", ModelProfile(_INSTRUCT, "", 2560, 8192, shortens=True)),
    (r"qwen3-embedding([-:]8b.*)?", ModelProfile(_INSTRUCT, "", 4096, 8192, shortens=True)),
    (r"text-embedding-3-small", ModelProfile("", "", 1536, 8191, shortens=True)),
    (r"text-embedding-3-large", ModelProfile("", "", 3072, 8191, shortens=True)),
    (r"text-embedding-ada-002", ModelProfile("", "", 1536, 8191)),
    (r"gemini-embedding-001", ModelProfile("", "", 3072, 2048, shortens=True)),
    (r"mistral-embed", ModelProfile("", "", 1024, 8192)),
)


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What a user may want otherwise; None everywhere for what is known of the model and suits the server.

    Attributes:
        dim: Length of the vectors.
        query_prefix: Put before a question; empty for nothing.
        passage_prefix: Put before a text to be found; empty for nothing.
        max_tokens: How much of a text the model reads.
        batch: Texts in one request.
        seconds: How long one request may take.
    """

    dim: int | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None
    max_tokens: int | None = None
    batch: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingPlan:
    """A recipe with the user's changes, and the space that comes of it.

    Attributes:
        space: Plain model id for the standard recipe; a suffix for another length or other words around the text.
        recipe: What is done.
        ask_dim: The length to ask the server for, None where it is the model's own.
    """

    space: Space
    recipe: ModelProfile
    ask_dim: int | None


def plan(model: str, wishes: ModelOptions) -> EmbeddingPlan:
    """Decide how a served model is used, from what is known of it; see :func:`plan_for`."""
    model = model.removesuffix(":latest")
    return plan_for(model, find(model), wishes)


def plan_for(model: str, standard: ModelProfile, wishes: ModelOptions) -> EmbeddingPlan:
    """Decide how a model is used.

    Args:
        model: Its id.
        standard: How it wants to be used.
        wishes: What the user wants otherwise.
    """
    dim = wishes.dim
    if dim is None and standard.dim is None:
        raise BadConfig(
            f"nobody told how long the vectors of {model} are",
            "Set dim; the first vector that comes back is checked against it.",
        )
    own = standard.dim or dim or 0
    wanted = dim or own
    if wanted != own and not (standard.shortens and wanted < own):
        raise BadConfig(f"{model} has {own} dimensions, not {wanted}", "Unset dim.")
    recipe = replace(
        standard,
        query=standard.query if wishes.query_prefix is None else wishes.query_prefix,
        passage=standard.passage if wishes.passage_prefix is None else wishes.passage_prefix,
        max_tokens=wishes.max_tokens or standard.max_tokens,
        dim=own,
    )
    suffix = "" if wanted == own else f"@{wanted}"
    if (recipe.query, recipe.passage, recipe.max_tokens) != (standard.query, standard.passage, standard.max_tokens):
        told = "\0".join((recipe.query, recipe.passage, str(recipe.max_tokens)))
        suffix += "~" + hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return EmbeddingPlan(Space(model + suffix, wanted), recipe, None if wanted == own else wanted)


def find(model: str) -> ModelProfile:
    """The standard recipe of a model; one without prefixes and length for a model that is not known.

    A registry's or publisher's name in front (``nomic-ai/``) makes no difference.
    """
    name = model.lower().removesuffix(":latest").rpartition("/")[2]
    return next((recipe for pattern, recipe in _KNOWN if re.fullmatch(pattern, name)), ModelProfile())
