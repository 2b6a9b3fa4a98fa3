"""A base is a folder with an identity; what is no base, or no whole one, is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.refusals import refused

import onboard
from onboard.bases import Base, find_base, folder_digest, named_bases
from onboard.bases.load import fresh_backbone, fresh_engine, load_engine, resolve_device
from onboard.bases.tokens import token_counter, verbaliser_of
from onboard.data.verbaliser import verbalise
from onboard.domain.dataset import Label
from onboard.errors import DamagedError, InputError, NotAllowedError, OnboardError, UnavailableError
from onboard.hypernetworks.register import register_base
from onboard.registry.bases import BaseRepository
from onboard.registry.services import Services, open_services
from onboard.serving import Predictor
from onboard.settings import Settings


@pytest.fixture
def copy(tiny_base: Base, tmp_path: Path) -> Path:
    """A copy of the tiny base that may be harmed."""
    return Path(shutil.copytree(tiny_base.folder, tmp_path / "copy"))


def test_a_base_is_found_by_its_folder_and_says_what_it_holds(tiny_base: Base, copy: Path) -> None:
    base = find_base(str(copy))
    assert (base.name, base.folder) == ("tiny", copy.resolve())
    assert [source.name for source in base.sources] == ["sst2", "stsb"]
    assert base.sources[0].labels == ("negative", "positive")
    assert (base.sources[1].kind, base.sources[1].low, base.sources[1].high) == ("regression", 0.0, 5.0)
    assert [anchor.name for anchor in base.anchors] == ["topics-2"]
    assert set(base.embeddings) == {"sst2", "stsb", "topics-2"}
    assert {name: len(rows) for name, rows in base.trained_rows.items()} == {"sst2": 2, "stsb": 2}


def test_a_copy_has_the_same_digest_and_one_changed_byte_anywhere_another(tiny_base: Base, copy: Path) -> None:
    assert find_base(str(copy)).digest == tiny_base.digest
    assert find_base(str(copy)).backbone_digest == tiny_base.backbone_digest
    for path in sorted(path for path in copy.rglob("*") if path.is_file()):
        content = path.read_bytes()
        harmed = content[:-1] + bytes([content[-1] ^ 1])
        path.write_bytes(harmed)
        assert folder_digest(copy) != tiny_base.digest, path
        assert (folder_digest(copy / "backbone") != tiny_base.backbone_digest) == ("backbone" in path.parts)
        path.write_bytes(content)
    assert folder_digest(copy) == tiny_base.digest


def test_a_copy_that_was_cut_short_does_not_become_another_base(services: Services, copy: Path) -> None:
    whole = sorted(copy.rglob("*.safetensors"))
    assert {"hypernetwork.safetensors", "model.safetensors"} <= {path.name for path in whole}
    for path in whole:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        with refused("base-file-unreadable", path=str(path)):
            register_base(services, find_base(str(copy)))
        path.write_bytes(content)
    register_base(services, find_base(str(copy)))
    with services.database.read() as session:
        (known,) = BaseRepository(session).list()
    assert known.digest == find_base(str(copy)).digest


def test_a_renamed_file_changes_the_digest(copy: Path, tiny_base: Base) -> None:
    (copy / "card.md").rename(copy / "card.txt")  # the order of the files stays
    assert folder_digest(copy) != tiny_base.digest


def test_a_bare_backbone_is_refused_and_the_command_that_makes_a_base_is_named(tiny_base: Base) -> None:
    with refused("bare-backbone"):
        find_base(str(tiny_base.folder / "backbone"))


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    for name in ("no-such-base", str(tmp_path), str(tmp_path / "missing"), "../mini"):
        with refused("unknown-base"):
            find_base(name)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"base"', b"caf\xe9", b"\x00\x01"])
def test_a_damaged_description_is_told(copy: Path, content: bytes) -> None:
    (copy / "base.json").write_bytes(content)
    valid = content in (b"[]", b'"base"')
    with refused("base-json-not-object" if valid else "base-json-unreadable", file=str(copy / "base.json")):
        find_base(str(copy))


@pytest.mark.parametrize(
    "file", ["hypernetwork.safetensors", "embeddings.safetensors", "trained_rows.safetensors", "backbone/config.json"]
)
def test_a_missing_file_is_named(copy: Path, file: str) -> None:
    (copy / file).unlink()
    with pytest.raises(DamagedError) as caught:
        find_base(str(copy))
    assert file in caught.value.message
    assert caught.value.remedy


def test_a_base_of_a_later_format_asks_for_a_later_onboard(copy: Path) -> None:
    document = json.loads((copy / "base.json").read_text(encoding="utf-8"))
    (copy / "base.json").write_text(json.dumps({**document, "format": 2}), encoding="utf-8")
    with refused("base-format-unknown"):
        find_base(str(copy))


def test_a_folder_that_may_not_be_read_is_not_allowed(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(self: Path, *arguments: object, **named: object) -> str:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_text", forbidden)
    with refused("base-forbidden"):
        find_base(str(copy))
    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(NotAllowedError):
        folder_digest(copy)


def test_a_home_that_the_environment_does_not_name_has_its_own_bases(
    tiny_base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "other"
    shutil.copytree(tiny_base.folder, home / "bases" / "tiny-there")
    monkeypatch.setenv("ONBOARD_HOME", str(tmp_path / "mine"))
    monkeypatch.setenv("ONBOARD_BASE", "tiny-there")
    with refused("unknown-base", base="tiny-there"):
        find_base("tiny-there")
    assert find_base("tiny-there", home).digest == tiny_base.digest
    assert home / "bases" / "tiny-there" in [base.folder for base in named_bases(home)]
    open_services(Settings(home=home)).close()
    with closing(Predictor(home)) as predictor:
        (answer,) = predictor.predict([{"task": "sst2", "text": "a good day"}])
    assert answer.task == "sst2"


def test_whoever_else_works_here_can_read_a_base_that_was_made(tiny_base: Base) -> None:
    for path in tiny_base.folder.rglob("*"):
        assert path.stat().st_mode & 0o044 == 0o044, path


def test_mini_ships_and_every_shipped_base_is_whole() -> None:
    package = Path(onboard.__file__).parent / "bases"
    shipped = [base for base in named_bases() if base.folder.parent == package]
    assert "mini" in [base.name for base in shipped]
    for base in shipped:
        assert find_base(base.name).digest == base.digest
        names = [task.name for task in (*base.sources, *base.anchors)]
        assert set(base.embeddings) == set(names)
        assert set(base.trained_rows) == {source.name for source in base.sources}
        assert base.document["licence"]
        for source in base.sources:
            assert len(source.words) == len(source.labels) or source.kind == "regression"


def test_an_engine_is_loaded_once_a_device_and_frozen(tiny_base: Base) -> None:
    engine = load_engine(tiny_base, "cpu")
    assert load_engine(find_base(str(tiny_base.folder)), "cpu") is engine
    assert not any(parameter.requires_grad for parameter in engine.backbone.parameters())
    assert not any(parameter.requires_grad for parameter in engine.hypernetwork.parameters())
    assert engine.encoder.max_tokens == 32


def test_a_device_that_is_not_there_is_told() -> None:
    assert resolve_device("cpu").type == "cpu"
    assert resolve_device("auto").type in ("cpu", "cuda")
    with pytest.raises(UnavailableError) as absent:  # its type depends on how torch was built
        resolve_device("cuda:9")
    assert absent.value.data["index"] == 9
    for wrong in ("gpu", "cuda:x", "", "cpu;rm"):
        with pytest.raises(InputError) as caught:
            resolve_device(wrong)
        assert "ONBOARD_DEVICE" in caught.value.remedy


def test_tokens_are_counted_as_the_encoder_counts_them(tiny_base: Base) -> None:
    count = token_counter(tiny_base)
    assert count is not None
    encoder = load_engine(tiny_base, "cpu").encoder
    for pair in (("good film", None), ("a good film", "the plot"), ("film 🙂", None)):
        assert count(*pair) == len(encoder.encode([pair])[0])


def test_tokens_cannot_be_counted_without_a_tokenizer_file(copy: Path) -> None:
    (copy / "backbone" / "tokenizer.json").unlink()
    assert token_counter(find_base(str(copy))) is None


@pytest.mark.parametrize("name", ["tiny", "mini"])
@pytest.mark.parametrize("labels", [
    ("CardLost", "card_lost", "not_entailment"), (1, "1", True, 10, 0.5), ("😀", "😡", "👍🏽", "👍"),
    ("\ufe0f", "否定", "Schön"), ("a b c d e f g h i j k l m", "a b c d e f g h i j k l n"),
], ids=str)  # fmt: skip
def test_labels_get_their_words_without_the_model_as_a_job_gives_them(
    tiny_base: Base, name: str, labels: tuple[Label, ...]
) -> None:
    from transformers import AutoTokenizer

    from onboard.model.encoding import TextEncoder

    base = tiny_base if name == "tiny" else find_base(name)
    encoder = TextEncoder(AutoTokenizer.from_pretrained(base.folder / "backbone"))
    verbaliser = verbaliser_of(base)
    assert verbaliser is not None
    assert verbaliser(labels) == verbalise(labels, encoder.word_ids, encoder.tokenizer.unk_token_id)


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json"])
def test_a_tokenizer_that_is_not_there_gives_no_words_and_a_damaged_one_is_told(copy: Path, file: str) -> None:
    path = copy / "backbone" / file
    path.write_text("[]", encoding="utf-8")
    type_ = "base-tokens-unreadable" if file == "tokenizer.json" else "base-config-unreadable"
    with refused(type_):
        verbaliser_of(find_base(str(copy)))
    path.unlink()
    assert verbaliser_of(find_base(str(copy))) is None


_HARMS: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "a list": lambda _: b"[]",
    "an object": lambda _: b"{}",
    "no text": lambda content: b"\xff\xfe" + content[2:],
    "nested too deep": lambda _: b"[" * 100_000,
}
_READ: tuple[Callable[[Base], object], ...] = (
    fresh_backbone,
    fresh_engine,
    token_counter,
    verbaliser_of,
    lambda base: base.embeddings,
    lambda base: base.known_rows,
    lambda base: base.fingerprints,
)


@pytest.mark.parametrize("harm", _HARMS)
@pytest.mark.parametrize(
    "file",
    [
        "backbone/tokenizer.json", "backbone/tokenizer_config.json", "backbone/config.json", "hypernetwork.safetensors",
        "embeddings.safetensors", "trained_rows.safetensors", "fingerprints.safetensors",
    ],
)  # fmt: skip
def test_whatever_is_wrong_with_a_file_of_a_base_is_told_as_ours(copy: Path, file: str, harm: str) -> None:
    path = copy / file
    path.write_bytes(_HARMS[harm](path.read_bytes() if path.exists() else b"somewhat long content"))
    base, refusals = find_base(str(copy)), []
    for read in _READ:
        try:
            read(base)
        except OnboardError as error:
            refusals.append(error)
    assert refusals or (file, harm) == (
        "backbone/tokenizer_config.json",
        "an object",
    )  # each of its facts may be left out
    assert all(isinstance(error, DamagedError) and str(copy) in error.message for error in refusals)
