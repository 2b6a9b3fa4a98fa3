"""The curriculum: hundreds of training tasks of many kinds, from labeled sources, plain texts and a teacher.

batch.py              Batch, TrainingTask
texts.py rows.py      all texts as token ids; rows as indices, drawn by class with similar lengths
wording.py            words that can be labels
workshop.py           data and helpers shared by the kinds
from_sources.py merged.py joined.py topical.py form.py style.py pairs.py    the kinds
curriculum.py         the groups with their shares
"""

from __future__ import annotations

from onboard.making.curriculum.batch import TrainingTask
from onboard.making.curriculum.counts import KINDS, CurriculumCounts, KindCounts
from onboard.making.curriculum.curriculum import Curriculum, build_curriculum
from onboard.making.curriculum.source import Source
from onboard.making.curriculum.workshop import PlainTexts
from onboard.model.batch import Batch

__all__ = [
    "KINDS",
    "Batch",
    "Curriculum",
    "CurriculumCounts",
    "KindCounts",
    "PlainTexts",
    "Source",
    "TrainingTask",
    "build_curriculum",
]
