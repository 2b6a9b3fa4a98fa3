"""Loading a tokenizer from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onboard.errors import InputError


def load_tokenizer(folder: Path, called: str = "") -> Any:
    """The stock tokenizer of a folder.

    Args:
        called: what messages call the folder, where somebody else named it.

    Raises:
        InputError: it cannot be loaded, for whatever is wrong with its files.
    """
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # of a damaged file transformers raises whatever its parsing stumbles over
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError("tokenizer-unreadable", called=called or folder, reason=reason) from error
