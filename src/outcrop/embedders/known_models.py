"""How models are used: what precedes a question and a passage, how much they read, how long their vectors are.

A model that was trained with such words finds less without them, so they are part of the space. The facts are those of
the models' own cards.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from outcrop.config.settings import Settings
from outcrop.core.model import Space
from outcrop.errors import BadConfig

# Of a model that is not in the table: no embedding model of the last years reads less.
UNKNOWN_TOKENS = 512


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """How a model is used: the words before a question and a passage, the length of its vectors where it is known."""

    query: str = ""
    passage: str = ""
    dim: int | None = None
    max_tokens: int = UNKNOWN_TOKENS
    # Whether it can be asked for shorter vectors.
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
class EmbeddingPlan:
    """A profile with the user's options, and the space that results."""

    # Its id is the model's for the standard profile, with a suffix for another length or other words.
    space: Space
    profile: ModelProfile
    # The length to ask the server for; None where it is the model's own.
    ask_dim: int | None


def plan(model: str, options: Settings) -> EmbeddingPlan:
    model = model.removesuffix(":latest")
    return plan_from_profile(model, find_profile(model), options)


def plan_from_profile(model: str, standard: ModelProfile, options: Settings) -> EmbeddingPlan:
    own = standard.dim or options.dim
    if own is None:
        raise BadConfig(
            f"Outcrop does not know how long the vectors of {model} are",
            "Set dim; the first vector that comes back is checked against it.",
        )
    dim = options.dim or own
    if dim != own and not (standard.shortens and dim < own):
        raise BadConfig(f"{model} has {own} dimensions, not {dim}", "Unset dim.")
    profile = replace(
        standard,
        query=standard.query if options.query_prefix is None else options.query_prefix,
        passage=standard.passage if options.passage_prefix is None else options.passage_prefix,
        max_tokens=options.max_tokens or standard.max_tokens,
        dim=own,
    )
    suffix = "" if dim == own else f"@{dim}"
    if profile != replace(standard, dim=own):
        parts = "\0".join((profile.query, profile.passage, str(profile.max_tokens)))
        suffix += "~" + hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return EmbeddingPlan(Space(model + suffix, dim), profile, None if dim == own else dim)


def find_profile(model: str) -> ModelProfile:
    """The standard profile of a model; one without prefixes and length for an unknown one.

    A registry's or publisher's name in front (``nomic-ai/``) makes no difference.
    """
    name = model.lower().removesuffix(":latest").rpartition("/")[2]
    return next((profile for pattern, profile in _KNOWN if re.fullmatch(pattern, name)), ModelProfile())
