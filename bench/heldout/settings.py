"""The settings of each arm, in addition to task and rows: a finished run with other settings is another run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any, Final

from bench.harness.earlier_tasks import lessons_digest
from bench.harness.rows import Row
from bench.heldout.linear import INVERSE_PENALTY, RIDGE
from bench.heldout.material import TEST_ROWS, LoadedBase
from bench.heldout.plan import ARMS, DEFAULT, ENCODER, LEARNED, MINILM, MINILM_READOUT, READOUT, SETFIT, TRAINED
from bench.heldout.setfit_process import RECIPE, RELEASE
from bench.transfer.recipes import CREDITED, RECIPES
from onboard.guard import GuardSettings
from onboard.probe.settings import ProbeSettings
from onboard.statistics.blocks import BLOCKS
from onboard.statistics.prior import HALF_TAUGHT
from onboard.statistics.prior import RIDGE as RIDGE_OF_PRIOR
from onboard.statistics.readout import PRIOR_SCALES, RIDGE_PRIOR, RIDGES, SCALE_PRIOR, SHARPNESSES
from onboard.statistics.share import CLEARLY, EMBEDDING_ROWS, PRIOR_ROWS
from onboard.train.settings import FewShotSettings, TuningSettings
from onboard.train.step_length import NEARLY

READOUT_SETTINGS: Final = [
    *(RIDGES, RIDGE_PRIOR, SHARPNESSES, BLOCKS),
    "a label's share given back, its words a row, signed roots",
]
SHARE_SETTINGS: Final = [EMBEDDING_ROWS, PRIOR_ROWS, CLEARLY]
PRIOR_SETTINGS: Final = [RIDGE_OF_PRIOR, HALF_TAUGHT, PRIOR_SCALES, SCALE_PRIOR]
_LINEAR: Final = [INVERSE_PENALTY, RIDGE]


def settings_of(place: LoadedBase) -> dict[str, Row]:
    """Settings by arm. Of a bare backbone the readout's base is the backbone."""
    return {arm: {"test_rows": TEST_ROWS, **_of_arm(place, arm)} for arm in ARMS}


def _of_arm(place: LoadedBase, arm: str) -> Row:
    if arm in LEARNED:
        lessons = lessons_digest(place.base) if arm == DEFAULT else ""
        job: Row = {"base": place.base_digest, "job": job_settings(whole=arm == DEFAULT)}
        return job | ({"lessons": lessons} if lessons else {})
    if arm == READOUT:
        return {"base": place.base_digest, "readout": digest(READOUT_SETTINGS)}
    if arm == MINILM_READOUT:
        return {"readout": digest(READOUT_SETTINGS)}
    if arm == SETFIT:
        return {"release": RELEASE, "recipe": RECIPE}
    if arm in TRAINED:
        return {"backbone": place.digest, "recipe": asdict(RECIPES[arm, CREDITED[arm]])}
    if arm in (ENCODER, MINILM):
        return {"linear": _LINEAR, **({"backbone": place.digest, "blocks": BLOCKS} if arm == ENCODER else {})}
    return {}


def job_settings(*, whole: bool = True) -> str:
    """Identity of what a job depends on; or of its embedding alone, after probe and training."""
    alone = [asdict(FewShotSettings()), asdict(ProbeSettings())]
    after = [asdict(TuningSettings()), asdict(GuardSettings()), NEARLY, READOUT_SETTINGS, SHARE_SETTINGS]
    after.append(PRIOR_SETTINGS)
    return digest([*alone, *(after if whole else [])])


def digest(settings: Any) -> str:
    """Identity of settings."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
