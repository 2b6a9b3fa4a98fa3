"""Load a tokenizer from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onboard.errors import InputError


def load_tokenizer(folder: Path, called: str = "") -> Any:
    """Return the stock tokenizer of a folder.

    Args:
        called: name of the folder in messages, if it differs.

    Raises:
        InputError: it cannot be loaded, whatever the reason.
    """
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # transformers raises various errors for damaged files
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError("tokenizer-unreadable", called=called or folder, reason=reason) from error
