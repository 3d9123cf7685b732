"""Reads what a model's folder states about it, in the files of sentence-transformers and its exporters.

The model is not loaded, so its space is known at once. What no file states has sentence-transformers' default.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from outcrop.embedders.known_models import ModelProfile
from outcrop.errors import BadConfig

# Where exporters put an ONNX graph, the most exact one first.
GRAPHS = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx", "model_optimized.onnx")

SETTINGS = (
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "vocab.txt",
    "1_Pooling/config.json",
)
WEIGHTS = ("*.onnx", "onnx/*.onnx", "*.onnx_data", "onnx/*.onnx_data", "*.safetensors", "pytorch_model.bin")

# Bytes that the digest reads at the beginning, in the middle and at the end of weights: enough to tell two trainings
# apart, also of a model of a gigabyte.
SAMPLE_BYTES = 1 << 16

# Model types whose positions begin after the padding token's number, so two fewer are left.
PADDED = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})

# The flags of older files and the names of newer ones.
POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
LONGEST = 8192
DEFAULT_TOKENS = 512


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model in a folder.

    Attributes:
        id: The folder's name and a digest of its contents, so that two folders of one name are never confused.
        profile: How the model is used; its ``dim`` is None where no file states it.
        pooling: How the vectors of tokens become one: ``mean``, ``cls``, ``max`` or ``lasttoken``.
        modules: Types of the modules after the transformer, pooling and normalising not counted.
        lower: Whether words without a ``tokenizer.json`` are read in lower case.
    """

    path: Path
    id: str
    profile: ModelProfile
    pooling: str
    graph: Path | None
    modules: tuple[str, ...]
    lower: bool


def is_path(model: str) -> bool:
    """Whether a model is named by a path: it starts with a slash, a dot or a tilde."""
    return model.startswith(("/", ".", "~")) or "\\" in model or Path(model).is_absolute()


def read_model_folder(model: str) -> ModelFolder:
    folder = Path(model).expanduser().resolve()
    if not folder.is_dir():
        raise BadConfig(f"there is no folder {folder}", "model names a folder that holds a model.")
    config = _read_json(folder / "config.json")
    pooling = _read_json(folder / "1_Pooling/config.json")
    prompts = _read_json(folder / "config_sentence_transformers.json").get("prompts")
    prompts = prompts if isinstance(prompts, dict) else {}
    graph = next((folder / name for name in GRAPHS if (folder / name).is_file()), None)
    if graph is None and not any(True for pattern in WEIGHTS for _ in folder.glob(pattern)):
        raise BadConfig(f"{folder} holds no model", "It should hold model.onnx, or what sentence-transformers saves.")
    return ModelFolder(
        path=folder,
        id=f"{folder.name}-{_digest(folder)}",
        profile=ModelProfile(
            query=_first_text(prompts, "query"),
            passage=_first_text(prompts, "document", "passage", "corpus"),
            dim=_first_number(pooling, "word_embedding_dimension", "embedding_dimension")
            or _first_number(config, "hidden_size", "hidden_dim", "d_model", "dim"),
            max_tokens=_max_tokens(folder, config),
        ),
        pooling=_pooling(pooling, folder),
        graph=graph,
        modules=_modules(folder),
        lower=_read_json(folder / "tokenizer_config.json").get("do_lower_case", True) is not False,
    )


def _pooling(config: dict[str, object], folder: Path) -> str:
    mode = config.get("pooling_mode")
    flags = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    modes = [mode] if isinstance(mode, str) else [POOLINGS.get(flag, flag) for flag in flags]
    if len(modes) > 1 or not set(modes) <= set(POOLINGS.values()):
        raise BadConfig(
            f"{folder} pools its tokens in a way that Outcrop lacks ({', '.join(modes)})", "Choose another model."
        )
    return modes[0] if modes else "mean"


def _modules(folder: Path) -> tuple[str, ...]:
    try:
        modules = json.loads((folder / "modules.json").read_text("utf-8"))
        names = [str(module["type"]).rpartition(".")[2] for module in modules]
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadConfig(f"{folder / 'modules.json'} cannot be read: {error}", "Get the model again.") from error
    return tuple(name for name in names if name not in ("Transformer", "Pooling", "Normalize"))


def _max_tokens(folder: Path, config: dict[str, object]) -> int:
    positions = _first_number(config, "max_position_embeddings", "n_positions")
    if positions is not None and config.get("model_type") in PADDED:
        positions -= 2
    sequence = _first_number(_read_json(folder / "sentence_bert_config.json"), "max_seq_length")
    limit = _first_number(_read_json(folder / "tokenizer_config.json"), "model_max_length")
    known = [each for each in (positions, sequence, limit) if each is not None and each > 2]
    return min([*known, LONGEST]) if known else DEFAULT_TOKENS


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    weights = {path for pattern in WEIGHTS for path in folder.glob(pattern)}
    for path in sorted({folder / name for name in SETTINGS} | weights):
        if not path.is_file():
            continue
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            for offset in sorted({0, size // 2, max(0, size - SAMPLE_BYTES)}):
                file.seek(offset)
                digest.update(file.read(SAMPLE_BYTES))
    return digest.hexdigest()[:8]


def _read_json(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise BadConfig(f"{path} cannot be read: {error}", "Get the model again.") from error
    return content if isinstance(content, dict) else {}


def _first_number(config: dict[str, object], *names: str) -> int | None:
    values = (config.get(name) for name in names)
    return next((each for each in values if isinstance(each, int) and not isinstance(each, bool) and each > 0), None)


def _first_text(config: dict[object, object], *names: str) -> str:
    return next((value for name in names if isinstance(value := config.get(name), str)), "")
