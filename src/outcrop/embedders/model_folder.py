"""What a folder that holds a model says about it: the files that sentence-transformers and its exports write.

Read without loading the model, so that its space is known at once. Where the folder is silent, the defaults are those
of sentence-transformers.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from outcrop.errors import BadConfig

# Where exporters put an ONNX graph, the most exact one first.
GRAPHS = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx", "model_optimized.onnx")

SETTINGS = (
    *("config.json", "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
    *("tokenizer_config.json", "tokenizer.json", "vocab.txt", "1_Pooling/config.json"),
)
WEIGHTS = ("*.onnx", "onnx/*.onnx", "*.onnx_data", "onnx/*.onnx_data", "*.safetensors", "pytorch_model.bin")

# Read at the beginning, in the middle and at the end of weights: enough to tell trainings apart, and no slower for a
# model of a gigabyte.
SAMPLE_BYTES = 1 << 16

# Their positions begin after the number of the padding token, so two fewer are left.
PADDED = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})

POOLINGS = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens", "lasttoken": "lasttoken"}
LONGEST = 8192
DEFAULT_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Layout:
    """A model in a folder.

    Attributes:
        folder: Where it is.
        id: The folder's name and a digest of what is in it, so that two of one name are never taken for each other.
        dim: Length of its vectors; None where nothing says so.
        max_tokens: How much of a text it reads.
        query: Put before a question.
        passage: Put before a text to be found.
        pooling: How the vectors of tokens become one: ``mean``, ``cls``, ``max`` or ``lasttoken``.
        graph: The ONNX file; None where there is none.
        modules: What comes after the transformer, by type, pooling and normalising not counted.
        lower: Whether words without a ``tokenizer.json`` are taken in lower case.
    """

    folder: Path
    id: str
    dim: int | None
    max_tokens: int
    query: str
    passage: str
    pooling: str
    graph: Path | None
    modules: tuple[str, ...]
    lower: bool


def is_path(model: str) -> bool:
    """Whether a model is named by where it is: with a slash at its start, a dot or a tilde. All else is a name."""
    return model.startswith(("/", ".", "~")) or "\\" in model or Path(model).is_absolute()


def read(model: str) -> Layout:
    """Read the folder that a path names."""
    folder = Path(model).expanduser().resolve()
    if not folder.is_dir():
        raise BadConfig(f"there is no folder {folder}", "model names a folder that holds a model.")
    config = _json(folder / "config.json")
    pooling = _json(folder / "1_Pooling/config.json")
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    prompts = prompts if isinstance(prompts, dict) else {}
    graph = next((folder / name for name in GRAPHS if (folder / name).is_file()), None)
    if graph is None and not any(True for pattern in WEIGHTS for _ in folder.glob(pattern)):
        raise BadConfig(f"{folder} holds no model", "It should hold model.onnx, or what sentence-transformers saves.")
    return Layout(
        folder=folder,
        id=f"{folder.name}-{_digest(folder)}",
        dim=_number(pooling, "word_embedding_dimension", "embedding_dimension")
        or _number(config, "hidden_size", "hidden_dim", "d_model", "dim"),
        max_tokens=_max_tokens(folder, config),
        query=_text(prompts, "query"),
        passage=_text(prompts, "document", "passage", "corpus"),
        pooling=_pooling(pooling, folder),
        graph=graph,
        modules=_modules(folder),
        lower=_json(folder / "tokenizer_config.json").get("do_lower_case", True) is not False,
    )


def _pooling(config: dict[str, object], folder: Path) -> str:
    mode = config.get("pooling_mode")
    chosen = (
        [mode]
        if isinstance(mode, str)
        else [name for name, key in POOLINGS.items() if config.get(f"pooling_mode_{key}") is True]
    )
    others = [
        key
        for key, value in config.items()
        if key.startswith("pooling_mode_")
        and value is True
        and key.removeprefix("pooling_mode_") not in POOLINGS.values()
    ]
    if len(chosen) + len(others) > 1 or others or (chosen and chosen[0] not in POOLINGS):
        told = ", ".join([*map(str, chosen), *others])
        raise BadConfig(f"{folder} pools its tokens in a way that is not understood ({told})", "Choose another model.")
    return str(chosen[0]) if chosen else "mean"


def _modules(folder: Path) -> tuple[str, ...]:
    try:
        found = json.loads((folder / "modules.json").read_text("utf-8"))
        names = [str(entry["type"]).rpartition(".")[2] for entry in found]
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadConfig(f"{folder / 'modules.json'} cannot be read: {error}", "Get the model again.") from error
    return tuple(name for name in names if name not in ("Transformer", "Pooling", "Normalize"))


def _max_tokens(folder: Path, config: dict[str, object]) -> int:
    positions = _number(config, "max_position_embeddings", "n_positions")
    if positions is not None and config.get("model_type") in PADDED:
        positions -= 2
    told = _number(_json(folder / "sentence_bert_config.json"), "max_seq_length")
    limit = _number(_json(folder / "tokenizer_config.json"), "model_max_length")
    known = [each for each in (positions, told, limit) if each is not None and each > 2]
    return min([*known, LONGEST]) if known else DEFAULT_TOKENS


def _digest(folder: Path) -> str:
    """Of everything that decides what the vectors are."""
    digest = hashlib.sha256()
    weights = {path for pattern in WEIGHTS for path in folder.glob(pattern)}
    for path in sorted({folder / name for name in SETTINGS} | weights):
        if not path.is_file():
            continue
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            for at in sorted({0, max(0, size // 2), max(0, size - SAMPLE_BYTES)}):
                file.seek(at)
                digest.update(file.read(SAMPLE_BYTES))
    return digest.hexdigest()[:8]


def _json(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise BadConfig(f"{path} cannot be read: {error}", "Get the model again.") from error
    return found if isinstance(found, dict) else {}


def _number(config: dict[str, object], *names: str) -> int | None:
    found = (config.get(name) for name in names)
    return next((each for each in found if isinstance(each, int) and not isinstance(each, bool) and each > 0), None)


def _text(config: dict[object, object], *names: str) -> str:
    found = (config.get(name) for name in names)
    return next((each for each in found if isinstance(each, str)), "")
