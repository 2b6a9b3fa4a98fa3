"""An existing T5 from the hub or a folder, with its commit and license. Looking it up takes seconds at most."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from onboard.data.hub_deadline import ANSWER_SECONDS, unreachable, within_deadline
from onboard.errors import InputError, NotAllowedError, NotFoundError, UnavailableError
from onboard.making.multitask.recipe import GivenBackbone
from onboard.model.backbone import load_backbone
from onboard.model.tokenizer import load_tokenizer

_NEEDED: Final = ("*.json", "*.safetensors", "*.model", "*.txt")
_LARGEST_HALF: Final = torch.finfo(torch.float16).max


@dataclass(frozen=True)
class FoundBackbone:
    """A backbone on this machine.

    Args:
        source: as named in the recipe.
        folder: with config.json, weights and tokenizer.
        revision: the commit on the hub; None for a folder.
        licence: license id of the hub; None if it is not stated.
    """

    source: str
    folder: Path
    revision: str | None
    licence: str | None

    def to_json(self) -> dict[str, str | None]:
        """Return the entry for base.json."""
        return {"from": self.source, "revision": self.revision, "licence": self.licence}


def find_backbone(given: GivenBackbone) -> FoundBackbone:
    """Find the backbone in its folder, on the hub, or in the download cache.

    Raises:
        NotFoundError: neither a folder nor a model of the hub.
        NotAllowedError: the model is gated.
        UnavailableError: the hub cannot be reached within seconds, and the model is not in the cache.
    """
    folder = Path(given.source).expanduser()
    if folder.is_dir():
        return FoundBackbone(given.source, folder, None, None)
    if given.source.startswith((".", "/", "~")):
        raise NotFoundError("backbone-folder-missing", source=given.source)
    return _on_hub(given)


def load_given(source: FoundBackbone) -> tuple[Any, Any]:
    """Return backbone (frozen, float32, rounded to float16 as it will be stored) and tokenizer.

    Raises:
        InputError: not a T5, no safetensors, a tokenizer that cannot be loaded, or weights beyond float16.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()  # progress bars per file would only add noise
    backbone = load_backbone(source.folder)
    largest = max(float(parameter.detach().abs().max()) for parameter in backbone.parameters())
    if not largest < _LARGEST_HALF:
        raise InputError("backbone-beyond-float16", source=source.source, largest=largest)
    tokenizer = _tokenizer(source)
    if len(tokenizer) > backbone.get_input_embeddings().num_embeddings:
        raise InputError(
            "tokenizer-of-other-model",
            source=source.source,
            pieces=len(tokenizer),
            embeddings=backbone.get_input_embeddings().num_embeddings,
        )
    return backbone, tokenizer


def _tokenizer(backbone: FoundBackbone) -> Any:
    tokenizer = load_tokenizer(backbone.folder, backbone.source)
    digit = tokenizer("1", add_special_tokens=False)["input_ids"]
    if not digit or tokenizer.unk_token_id in digit:  # without its files, transformers creates an empty tokenizer
        raise InputError("tokenizer-empty", source=backbone.source)
    return tokenizer


def _on_hub(given: GivenBackbone) -> FoundBackbone:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    api = HfApi()
    try:
        info = within_deadline(lambda: api.model_info(given.source, revision=given.revision, timeout=ANSWER_SECONDS))
        folder = snapshot_download(given.source, revision=info.sha, allow_patterns=list(_NEEDED))
    except HFValidationError as error:
        raise NotFoundError("unknown-backbone", source=given.source) from error
    except GatedRepoError as error:
        raise NotAllowedError("hub-model-gated", source=given.source) from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        at = f" at {given.revision}" if given.revision else ""
        raise NotFoundError("unknown-hub-model", source=given.source, at=at) from error
    except unreachable() as error:
        return _downloaded_before(given, error)
    licence = None if info.card_data is None else info.card_data.get("license")
    return FoundBackbone(given.source, Path(folder), info.sha, licence)


def _downloaded_before(given: GivenBackbone, reason: Exception) -> FoundBackbone:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(given.source, revision=given.revision, local_files_only=True))
    except LocalEntryNotFoundError:
        message = str(reason).partition("\n")[0] or type(reason).__name__
        raise UnavailableError("hub-unreachable-for-backbone", source=given.source, said=message) from reason
    return FoundBackbone(given.source, folder, folder.name, None)
