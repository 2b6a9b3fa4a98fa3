"""What the numbers of each arm depend on, beside task and rows: a finished run of other settings is another run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any, Final

from bench.harness.rows import Row
from bench.heldout.linear import INVERSE_PENALTY, RIDGE
from bench.heldout.material import TEST_ROWS, Place
from bench.heldout.plan import ARMS, ENCODER, LEARNED, MINILM, READOUT, TRAINED
from bench.transfer.recipes import CREDITED, RECIPES
from onboard.guard import GuardSettings
from onboard.model.readout_features import BLOCKS
from onboard.probe.settings import ProbeSettings
from onboard.statistics.readout import PRIOR_ROWS, PRIOR_SHARE, RIDGE_PRIOR, RIDGES, SHARPNESSES
from onboard.train.settings import FewShotSettings, TuningSettings
from onboard.train.step_length import NEARLY

_READOUT: Final = [RIDGES, RIDGE_PRIOR, SHARPNESSES, PRIOR_SHARE, PRIOR_ROWS, BLOCKS]
_LINEAR: Final = [INVERSE_PENALTY, RIDGE]


def settings_of(place: Place) -> dict[str, Row]:
    """Settings by arm. Of a bare backbone the readout's base is the backbone."""
    return {arm: {"test_rows": TEST_ROWS, **_of_arm(place, arm)} for arm in ARMS}


def _of_arm(place: Place, arm: str) -> Row:
    if arm in LEARNED:
        steps = [asdict(FewShotSettings()), asdict(TuningSettings()), asdict(GuardSettings()), asdict(ProbeSettings())]
        job = [*steps, NEARLY, _READOUT]
        return {"base": place.base_digest, "job": _digest(job)}
    if arm == READOUT:
        return {"base": place.base_digest, "readout": _digest(_READOUT)}
    if arm in TRAINED:
        return {"backbone": place.digest, "recipe": asdict(RECIPES[arm, CREDITED[arm]])}
    if arm in (ENCODER, MINILM):
        return {"linear": _LINEAR, **({"backbone": place.digest, "blocks": BLOCKS} if arm == ENCODER else {})}
    return {}


def _digest(settings: Any) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
