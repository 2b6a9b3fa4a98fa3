"""Small edits of a sentence that keep, change or negate its meaning."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]*")
_FUNCTION_WORDS: Final = frozenset(
    """
    about above across after again against almost along already also although always among another anyone anything
    around because become been before began behind being below between both called came cannot could didn't does
    doesn't doing don't done down during each either else even ever every everyone everything find first found from
    gave given goes going have having here herself himself into isn't itself just knew know last later least less
    like made make many more most much must near never next nothing once only other ours over said same says seen
    several shall should since some someone something such take taken than that that's their them themselves then
    there these they think this those though thought three through together told took toward under until upon very
    wants wasn't well went were what when where whether which while will with within without would your
    """.split()  # noqa: SIM905 (a list of so many words is read as a text)
)
_ADVERB: Final = re.compile(
    r"(?<=\w )(?:also|very|just|really|quite|actually|simply|often|usually|generally|certainly|"
    r"\w{4,}(?:al|ous|ful|ent|ive|ic)ly) (?=\w)"
)
_DETERMINER: Final = re.compile(r"(?<=\w )(?:the|a|an) (?=\w)")
_LEADING: Final = re.compile(
    r"^((?:In|On|At|During|After|Before|By|From|For|Under|Within|Among|According to)(?: [\w'-]+){1,6}), "
    r"((?:the|a|an|he|she|it|they|we|his|her|its|their|this|these|there|[A-Z][\w'-]+)\b[^?\"]+)([.])$"
)
_COUPLE: Final = re.compile(r"(?<![\w-] of )\b([A-Z][a-z]{2,}|[a-z]{4,}) and ([A-Z][a-z]{2,}|[a-z]{4,})\b(?=[.,]|$)")
_VERB: Final = re.compile(r"\b(is|are|was|were|will|can|could|should|would|must|may)\b(?! not|n't)")
_NEGATED: Final = re.compile(r"\b(is|are|was|were|will|could|should|would|must|did|does|do|has|have|had) not \b")
_CANNOT: Final = re.compile(r"\bcannot\b")
_ANY_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nor|neither|cannot|without|\w+n't|any)\b", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"(?<![\d.,])\d{1,4}(?![\d.,]*\d)")
_TAIL: Final = re.compile(
    r",? (?:who|which|where|while|whereas|although|because|but|and (?:he|she|it|they|was|were|is|then))\b.*$"
)
_COUPLED: Final = re.compile(r"[^.]*\b(?:and|or)\b[^.]*|[, ]+")
_LEAST_WORDS: Final = 4


def swapped(text: str, rng: np.random.Generator) -> str | None:
    """Swap two similar content words that are not joined by `and` or `or`; None if there are no two."""
    words = [word for word in _WORD.finditer(text) if word.start() and _is_content(word.group())]
    pairs = [
        (a, b)
        for place, a in enumerate(words)
        for b in words[place + 1 : place + 8]
        if _alike(a.group(), b.group())
        and b.start() - a.end() > 1
        and not _COUPLED.fullmatch(text[a.end() : b.start()])
    ]
    if not pairs:
        return None
    a, b = pairs[int(rng.integers(len(pairs)))]
    return text[: a.start()] + b.group() + text[a.end() : b.start()] + a.group() + text[b.end() :]


def _is_content(word: str) -> bool:
    return len(word) >= 4 and word.lower() not in _FUNCTION_WORDS and not word.endswith(("ly", "ing", "ed"))


def _alike(first: str, second: str) -> bool:
    return (
        first.lower() != second.lower()
        and first[0].isupper() == second[0].isupper()
        and first.endswith("s") == second.endswith("s")
    )


def harmless(text: str, rng: np.random.Generator) -> str | None:
    """Rephrase slightly: drop an adverb or article, move an opening phrase, or swap the parts of an `and`."""
    edits = (_without_adverb, _moved, _turned)
    for edit in (*(edits[place] for place in rng.permutation(len(edits)).tolist()), _without_determiner):
        changed = edit(text)
        if changed is not None and changed != text:
            return changed
    return None


def _without_adverb(text: str) -> str | None:
    return _ADVERB.sub("", text, count=1)


def _without_determiner(text: str) -> str | None:
    return _DETERMINER.sub("", text, count=1)


def _moved(text: str) -> str | None:
    leading = _LEADING.match(text)
    if not leading:
        return None
    phrase, rest, stop = leading.groups()
    return rest[0].upper() + rest[1:] + " " + phrase[0].lower() + phrase[1:] + stop


def _turned(text: str) -> str | None:
    couple = _COUPLE.search(text)
    if not couple or couple.group(1)[0].isupper() != couple.group(2)[0].isupper():
        return None
    return text[: couple.start()] + f"{couple.group(2)} and {couple.group(1)}" + text[couple.end() :]


def denied(text: str) -> str | None:
    """Negate the first auxiliary; None if the sentence is already negated or has no auxiliary."""
    verb = _VERB.search(text)
    if not verb or not verb.start() or _ANY_NEGATION.search(text) or "?" in text:
        return None
    return text[: verb.end()] + " not" + text[verb.end() :]


def affirmed(text: str) -> str | None:
    """Remove the only negation; None if there is none or several."""
    if len(_ANY_NEGATION.findall(text)) != 1 or "?" in text:
        return None
    changed = _CANNOT.sub("can", _NEGATED.sub(r"\1 ", text))
    return None if changed == text else changed


def part(text: str) -> str | None:
    """Return the main clause before a trailing one, which the sentence entails."""
    if not re.match(r"[A-Z]", text) or re.match(r"(?:If|When|While|Although|Though|As|Because|Since|Unless)\b", text):
        return None
    cut = _TAIL.sub("", text, count=1)
    fitting = cut != text and len(cut.split()) >= _LEAST_WORDS and _VERB.search(cut) is not None and cut.count('"') != 1
    return cut.rstrip(",;: ") + "." if fitting else None


def renumbered(text: str, rng: np.random.Generator) -> str | None:
    """Replace one number of the sentence by a similar one."""
    figures = list(_NUMBER.finditer(text))
    if not figures:
        return None
    figure = figures[int(rng.integers(len(figures)))]
    number = int(figure.group())
    changed = number + int(rng.choice((-1, 1))) * int(rng.integers(1, max(3, number // 20 + 2)))
    if changed <= 0 or changed == number:
        changed = number + 2
    return text[: figure.start()] + str(changed) + text[figure.end() :]
