"""The answers of each arm to a cell's test rows."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch

from bench.heldout.families import Families
from bench.heldout.features import Features, encoder_features, of_teacher, of_teacher_layers
from bench.heldout.learned import Learned, Lessons, learn
from bench.heldout.linear import logistic, ridge, scaled
from bench.heldout.material import Cell, LoadedBase
from bench.heldout.plan import (
    BALANCED,
    EMBEDDING,
    ENCODER,
    LEARNED,
    MINILM,
    MINILM_READOUT,
    RANDOM,
    READ_OUT,
    READOUT,
    SETFIT,
    TRAINED,
    ArmRun,
)
from bench.heldout.readouts import fit_alone
from bench.heldout.setfit_process import SetFit
from bench.transfer.methods import baseline, fit, scored
from bench.transfer.recipes import CREDITED, RECIPES
from onboard.bases.load import fresh_engine
from onboard.errors import NotFoundError
from onboard.evaluate.baselines import INVERSE_PENALTY_PAIRS, INVERSE_PENALTY_TEXTS, MOST_WEIGHTS, predict_learned
from onboard.evaluate.tfidf import TfidfFeatures
from onboard.making.pretrain.teacher import Teacher
from onboard.model.readout_features import blocks_of
from onboard.statistics.blocks import BLOCKS

NO_TEACHER: Final = "left out: minilm and minilm-readout, since the teacher is not installed"
_READERS: Final = {READOUT: ENCODER, MINILM_READOUT: MINILM_READOUT}  # whose features a readout is made of


@dataclass
class Arms:
    """The arms, and what a cell's job has come to, which several of them tell of.

    Args:
        families: that the facts of a probe are reported in.
        readers: features by arm; no teacher, no `minilm`.
        whole: cells whose job is to run to its end, since the default is requested there.
        setfit: what answers for `setfit`; None where no run requests it.
    """

    families: Families
    readers: Mapping[str, Features]
    whole: Collection[tuple[str, int, int, str]]
    setfit: SetFit | None = None
    _job: tuple[Cell, Lessons] | None = None

    def answer(self, cell: Cell, run: ArmRun) -> Learned:
        """The answers of the run's arm.

        Raises:
            InputError: the rows make no readout.
        """
        arm = run.arm
        torch.manual_seed(cell.draw)
        if arm in LEARNED:
            return self._learned(cell, run)
        if arm == SETFIT:
            assert self.setfit is not None, "its runs are measured where it is installed only"
            return self.setfit.answer(cell)
        started = time.process_time()
        answered = self._computed(cell, arm)
        return Learned(answered, time.process_time() - started, {})

    def _computed(self, cell: Cell, arm: str) -> np.ndarray:
        """The answers of an arm that needs no job and no other process."""
        if arm in TRAINED:
            return _trained(cell, arm)
        if arm in READ_OUT:
            return self._read_out(cell, self.readers[_READERS[arm]])
        if arm in self.readers:
            blocks = blocks_of(pairs=cell.test[0].text_b is not None) if arm == ENCODER else 1
            return _linear(cell, self.readers[arm], blocks)
        return _bag_of_words(cell, balanced=arm == BALANCED)

    def _learned(self, cell: Cell, run: ArmRun) -> Learned:
        if run.arm == RANDOM:
            return self._told(cell, learn(cell, "random", whole=False).embedding)
        if self._job is None or self._job[0] is not cell:
            self._job = cell, learn(cell, "auto", whole=run.cell in self.whole)
        embedding, published = self._job[1].embedding, self._job[1].published
        if run.arm == EMBEDDING:
            return self._told(cell, embedding)
        assert published is not None, "the default is asked for where its job was to run to its end"
        return self._told(cell, published)

    def _told(self, cell: Cell, learned: Learned) -> Learned:
        facts = {name: fact for name, fact in learned.facts.items() if name != "init"}
        taken = self.families.taken(cell.task, learned.facts["init"])
        return Learned(learned.answers, learned.seconds, {**facts, **taken})

    def _read_out(self, cell: Cell, features: Features) -> np.ndarray:
        readout = fit_alone(cell, features).readout
        return _of_buckets(cell, readout.probabilities(features.of(cell.task, cell.test)))


def readers_of(place: LoadedBase, work: Path) -> dict[str, Features]:
    """The encoder's features, and the teacher's where it is installed; the features is kept in the work folder."""
    readers = {ENCODER: encoder_features(place, work)}
    try:
        teacher = Teacher.load()
    except NotFoundError as error:
        print(f"{NO_TEACHER}: {error.remedy}")
    else:
        readers[MINILM] = Features(of_teacher(teacher), work / MINILM)
        readers[MINILM_READOUT] = Features(of_teacher_layers(teacher), work / f"{MINILM_READOUT}-{BLOCKS}")
    return readers


def _of_buckets(cell: Cell, probabilities: np.ndarray) -> np.ndarray:
    """The same, or for a regression the expected value."""
    buckets = cell.bench.buckets
    expected: np.ndarray = probabilities if buckets is None else probabilities @ np.array(buckets.values)
    return expected


def _trained(cell: Cell, arm: str) -> np.ndarray:
    """LoRA or full fine-tuning of the same backbone on all rows."""
    rows, recipe = cell.dataset.train, RECIPES[arm, CREDITED[arm]]
    engine = fresh_engine(cell.place.base).to(cell.place.engine.device)
    learner, trie = baseline(arm, engine, recipe), engine.trie(cell.bench.words)
    fit(learner, cell.bench.encode(rows), cell.bench.targets(rows), trie, recipe, cell.draw)
    return _of_buckets(cell, np.exp(scored(learner, cell.bench.encode(cell.test), trie)))


def _linear(cell: Cell, features: Features, blocks: int) -> np.ndarray:
    train, test = (features.of(cell.task, rows) for rows in (cell.dataset.train, cell.test))
    regress = ridge if cell.regression else logistic
    centred, asked = scaled(train, test, blocks)
    return regress(centred, cell.train_labels, asked)


def _bag_of_words(cell: Cell, *, balanced: bool) -> np.ndarray:
    if not balanced:
        (answered,) = predict_learned(cell.dataset, cell.dataset.train, cell.test, cell.draw).values()
        return answered
    features = TfidfFeatures(cell.dataset.train, MOST_WEIGHTS // len(cell.dataset.labels))
    penalty = INVERSE_PENALTY_PAIRS if features.pairs else INVERSE_PENALTY_TEXTS
    return logistic(
        features(cell.dataset.train), cell.train_labels, features(cell.test), balanced=True, inverse_penalty=penalty
    )
