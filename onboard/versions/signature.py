"""Sign the files of a folder and verify them, with a user's key and OpenSSF's `model-signing`.

The signature is a file in the folder, `model.sig`, with the digests of all other files. No network access is needed.
That library can verify it without Onboard: `model_signing verify key`.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from onboard.domain.extras import require_extra
from onboard.errors import DamagedError, InputError, NotAllowedError, NotFoundError

if TYPE_CHECKING:
    from model_signing.hashing import Config as Hashing
    from model_signing.verifying import Config as Verifying

SIGNATURE: Final = "model.sig"
MOST_BYTES: Final = 1 << 20

_MAKE: Final = "openssl ecparam -name prime256v1 -genkey -noout -out key.pem"
_PUBLIC: Final = "openssl ec -in key.pem -pubout -out key.pub"

Made = TypeVar("Made")


def sign(folder: Path, key: Path) -> None:
    """Write `model.sig` into a folder, a signature of its current files.

    Args:
        key: file with a private key of an elliptic curve (P-256, P-384 or P-521) as PEM, without a password.

    Raises:
        NotFoundError: the key does not exist, or the extra `sign` is not installed.
        NotAllowedError: it cannot be read.
        InputError: it is not such a key.
    """
    require_extra("sign", "OpenSSL", "model_signing")
    from model_signing import signing

    config = signing.Config()
    _with_key(key, lambda: config.use_elliptic_key_signer(private_key=key), f"Make one: {_MAKE}")
    config.set_hashing_config(_hashing()).sign(folder, folder / SIGNATURE)


def require_public_key(key: Path) -> None:
    """Check that a file is a public key for `verify_signature`. Raises the same errors."""
    _verifier(key)


def verify_signature(folder: Path, key: Path, ignored: tuple[str, ...] = ()) -> None:
    """Check that the files of a folder are those that `model.sig` signs with this key.

    Args:
        key: file with the public key as PEM.
        ignored: names in the folder that are not covered.

    Raises:
        NotFoundError: the key does not exist, or the extra `sign` is not installed.
        NotAllowedError: the key cannot be read, or there is no signature.
        InputError: it is not a public key of an elliptic curve.
        DamagedError: the signature is of another key or other files, or cannot be read.
    """
    config = _verifier(key).set_hashing_config(_hashing(*ignored))
    from cryptography.exceptions import InvalidSignature

    if not (folder / SIGNATURE).is_file():
        raise NotAllowedError("signature-missing", key=key)
    try:
        with redirect_stdout(io.StringIO()):  # it warns about signatures of its older releases
            config.verify(folder, folder / SIGNATURE)
    except InvalidSignature as error:
        raise _refused(key, "it was made with another key") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        reason = str(error).partition("\n")[0].rstrip(". ") if isinstance(error, ValueError) else "it cannot be read"
        raise _refused(key, reason) from error


def _verifier(key: Path) -> Verifying:
    require_extra("sign", "OpenSSL", "model_signing")
    from model_signing import verifying

    config = verifying.Config()
    _with_key(key, lambda: config.use_elliptic_key_verifier(public_key=key), f"The public half: {_PUBLIC}")
    return config


def _refused(key: Path, reason: str) -> DamagedError:
    return DamagedError("signature-invalid", file=SIGNATURE, key=str(key), reason=reason)


def _hashing(*ignored: str) -> Hashing:
    from model_signing import hashing

    return hashing.Config().set_ignored_paths(paths=[SIGNATURE, *ignored])


def _with_key(key: Path, read: Callable[[], Made], remedy: str) -> Made:
    data: dict[str, Any] = {"key": str(key)}
    try:
        return read()
    except FileNotFoundError as error:
        raise NotFoundError("signing-key-missing", remedy=remedy, **data) from error
    except OSError as error:
        raise NotAllowedError("signing-key-forbidden", reason=error.strerror, **data) from error
    except (ValueError, TypeError, AttributeError) as error:  # not PEM, with a password, or of another kind
        kinds = "an elliptic curve's (P-256, P-384, P-521) as PEM, without a password"
        raise InputError("signing-key-invalid", kinds=kinds, remedy=remedy, **data) from error
