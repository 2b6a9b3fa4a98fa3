"""Rules on the surface form of a single text. Each returns one of a few classes, or UNSURE."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

UNSURE: Final = -1


@dataclass(frozen=True)
class Rule:
    """A rule for one property of a text.

    Args:
        name: such as `tense`.
        classes: number of classes.
        decide: returns the class of a text, or UNSURE.
        wordings: label words of the classes; a wording may cover only the first classes.
    """

    name: str
    classes: int
    decide: Callable[[str], int]
    wordings: Sequence[Sequence[str]]


def _rule(name: str, classes: int, decide: Callable[[str], int], *wordings: str) -> Rule:
    """Return a rule; each wording is given as words separated by spaces."""
    return Rule(name, classes, decide, tuple(tuple(words.split()) for words in wordings))


def _any(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


def _only(*patterns: re.Pattern[str]) -> Callable[[str], int]:
    """Return a function that gives the index of the only matching pattern; UNSURE for none or several."""

    def decide(text: str) -> int:
        matching = [place for place, pattern in enumerate(patterns) if pattern.search(text)]
        return matching[0] if len(matching) == 1 else UNSURE

    return decide


def _present(pattern: re.Pattern[str], doubtful: re.Pattern[str] | None = None) -> Callable[[str], int]:
    """Return a function that gives 1 if the pattern matches, UNSURE if only the doubtful one does, else 0."""

    def decide(text: str) -> int:
        if pattern.search(text):
            return 1
        return UNSURE if doubtful is not None and doubtful.search(text) else 0

    return decide


QUESTION_WORDS: Final = ("who", "what", "when", "where", "how", "why", "which")
_OPENS: Final = re.compile(rf"\W*(?:{'|'.join(QUESTION_WORDS)}|whose)\b", re.IGNORECASE)
_AUXILIARY: Final = re.compile(
    r"\W*(?:is|are|am|was|were|do|does|did|can|could|will|would|should|has|have|had|may|might)\b", re.IGNORECASE
)
_LAST_STOP: Final = re.compile(r"[.!]\W*$")


def is_question(text: str) -> int:
    """Return 0 for a question by its first word and question mark, 1 for a statement that ends in a full stop."""
    if text.rstrip("\"' ").endswith("?"):
        return 0 if _OPENS.match(text) or _AUXILIARY.match(text) else UNSURE
    return 1 if _LAST_STOP.search(text) and "?" not in text and not _AUXILIARY.match(text) else UNSURE


def question_word(text: str) -> int:
    """Return the index in QUESTION_WORDS of the word that starts a question, if it is the only one in it."""
    opening = _OPENS.match(text)
    if not opening or "?" not in text or sum(bool(_any(word).search(text)) for word in QUESTION_WORDS) != 1:
        return UNSURE
    word = opening.group().strip("\"'“‘( ").lower()
    return QUESTION_WORDS.index(word) if word in QUESTION_WORDS else UNSURE


def _open_or_closed(text: str) -> int:
    if is_question(text) != 0:
        return UNSURE
    if _OPENS.match(text):
        return 0
    return 1 if " or " not in text else UNSURE


_WAS: Final = _any(r"was|were|did|had|didn't|wasn't|weren't")
_IS: Final = _any(r"is|are|am|does|do|isn't|aren't|doesn't|don't|I'm|it's|that's|there's|you're|we're|they're")
_WILL: Final = _any(r"will|shall|won't|going to|'ll")
_MIXED: Final = _any(r"has|have|would|could|should|might|may|can|been|be")
_PAST_VERB: Final = _any(
    r"went|came|took|made|said|told|gave|found|knew|saw|became|began|left|wrote|held|stood|ran|won|lost|led|grew|"
    r"brought|thought|felt|kept|met|paid|sat|spoke|fell|sent|built|bought|died|moved|lived|worked|played|asked|looked|"
    r"turned|started|wanted|seemed|received|served|joined|returned|published|married|released"
)


def tense(text: str) -> int:
    """Return 0 for past, 1 for present, 2 for future, by auxiliaries and some common past forms."""
    was, now, will = _WAS.search(text) or _PAST_VERB.search(text), _IS.search(text), _WILL.search(text)
    if will:
        return UNSURE if was or now else 2
    if _MIXED.search(text) or bool(was) == bool(now):
        return UNSURE
    return 0 if was else 1


_I: Final = re.compile(r"(?<![-\w])(?:[Ii]|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself|I'm|I've|I'd|I'll)\b(?![.)])")
_YOU: Final = _any(r"you|your|yours|yourself")
_WE: Final = _any(r"we|our|ours|ourselves")
_HE: Final = _any(r"he|him|his|himself")
_SHE: Final = _any(r"she|her|hers|herself")
_THEY: Final = _any(r"they|them|their|theirs|themselves")

_NOT: Final = _any(r"not|never|no|nobody|nothing|none|nor|neither|cannot|nowhere|without|\w+n't|n't|n ' t")
_HALF_NOT: Final = _any(r"un\w+|dis\w+|lack\w*|fail\w*|hardly|barely|few|little|refus\w+|avoid\w*|but|non\w*")
_QUOTE: Final = re.compile(r"[\"“”]\s*\w[^\"“”]{8,}[\"“”]")
_SOME_QUOTE: Final = re.compile(r"[\"“”]|``|''")
_DIGIT: Final = re.compile(r"\d")
_NUMBER_WORD: Final = _any(
    r"one|two|three|four|five|six|seven|eight|nine|ten|hundred\w*|thousand\w*|million\w*|billion\w*|dozen\w*|first|second|"
    r"third|half|twice|once|eleven|twelve|twenty|thirty|forty|fifty|both"
)
_THAN: Final = re.compile(r"\b(?:more|less|fewer|better|worse|rather|\w{3,}er)\b(?: \w+){0,3} than\b", re.IGNORECASE)
_MOST: Final = _any(r"more|most|less|least|than|better|best|worse|worst|as \w+ as|like|\w{3,}est")
_MONTH: Final = r"January|February|March|April|June|July|August|September|October|November|December"
_DAY: Final = r"Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_TIME: Final = re.compile(
    rf"\b(?:1[0-9]\d\d|20\d\d|{_MONTH}|{_DAY}|[Yy]esterday|[Tt]oday|[Tt]omorrow|[Tt]onight|centur(?:y|ies)|"
    r"years?|months?|weeks?|hours?|minutes?|decades?|morning|evening|afternoon|o'clock|midnight)\b"
)
_PLACE: Final = re.compile(
    r"\b(?:America|Europe|Asia|Africa|Australia|England|Britain|France|Germany|Italy|Spain|Russia|China|Japan|India|Canada|"
    r"Mexico|Brazil|Ireland|Scotland|Wales|Poland|Greece|Turkey|Egypt|Israel|Iraq|Iran|Pakistan|London|Paris|Berlin|Rome|"
    r"Moscow|Tokyo|Chicago|Boston|California|Texas|Florida|Washington|New York|"
    r"city|cities|town|village|river|mountains?|"
    r"island|islands|country|countries|street|north|south|east|west|northern|southern|eastern|western|valley|coast|lake|"
    r"kitchen|garden|park|beach|road|field|house|room|school|church|outside|inside)\b"
)
_SOON: Final = _any(
    r"when|while|after|before|during|until|then|now|later|ago|since|soon|day|days|time|night|times|old|late"
)
_THERE: Final = re.compile(
    r"\b(?:in|at|from|to|near|of) (?:the )?[A-Z]|\b(?:here|there|where|place|home|area|world|land)\b"
)

_BECAUSE: Final = _any(r"because|due to|owing to|therefore|as a result")
_IF: Final = _any(r"if|unless|whether|provided that")
_BUT: Final = _any(r"but|although|though|however|despite|whereas|yet|nevertheless")
_WHEN: Final = _any(r"when|while|after|before|until|during|as soon as")
_MAY: Final = _any(r"(?-i:may)|might|could|perhaps|maybe|possibly|probably|likely|can")
_MUST: Final = _any(r"must|should|ought to|has to|have to|had to|need to|needs to|required to")
_ALL: Final = _any(r"all|every|everyone|everything|always|each|everybody|entire|whole")
_SOME: Final = _any(r"some|several|sometimes|someone|something|often|many|somebody|a few")
_NONE: Final = _any(r"none|never|nobody|nothing|no one|nowhere|no")
_PASSIVE: Final = _any(
    r"(?:is|are|was|were|been|being|be) (?:\w+ly )?"
    r"(?:\w+ed|made|written|held|built|given|taken|known|seen|found|led|sung) by"
)
_BE_DONE: Final = _any(r"(?:is|are|was|were|been|being|be|got|get)")
_THINK: Final = _any(
    r"I think|I believe|I feel|I guess|I suppose|in my opinion|I hope|I doubt|I mean|seems? to me|I love|I hate"
)
_RECORD: Final = re.compile(
    r"\b(?:born|founded|located|established|published|built|elected|released)\b.*\d{4}|\d{4}.*\b(?:founded|established|built)\b"
)
_SINGULAR: Final = re.compile(r"^(?:The|A|An|This|That|It|He|She|Each) (?:\w+ ){0,2}(?:is|was|has)\b")
_PLURAL: Final = re.compile(
    r"^(?:The|These|Those|They|Many|Some|Several|Most|All|Two|Both) (?:\w+ ){0,2}(?:are|were|have)\b"
)
_COMMAND: Final = re.compile(
    r"^(?:Please |Do not |Don't |Let |Take |Make |Go |Come |Give |Tell |Look |Put |Try |Keep |Get |Be |Use |Never |"
    r"Stop |Turn |Leave |Read |Think |Remember |Consider |Wait |Call |See |Ask |Show |Listen )(?!\w+ed\b)"
)
_ARTICLE: Final = re.compile(r"^(?:The|A|An)\b", re.IGNORECASE)
_PRONOUN: Final = re.compile(r"^(?:I|You|He|She|It|We|They)\b", re.IGNORECASE)
_PREPOSITION: Final = re.compile(
    r"^(?:In|On|At|From|By|For|With|After|Before|During|Under|Between|Among|Since)\b", re.IGNORECASE
)
_WISH: Final = re.compile(r"!\W*$")
_CALM: Final = re.compile(r"!")
_LIST: Final = re.compile(r"(?:\b[\w'-]+(?: [\w'-]+){0,2}, ){2,}(?:and|or) \w+")
_COMMA: Final = re.compile(r",|;")
_BRACKET: Final = re.compile(r"\([^)]{3,}\)")
_MALE: Final = _any(r"he|him|his|himself|man|men|boys?|father|son|brother|king|husband|mr")
_FEMALE: Final = _any(r"she|hers?|herself|woman|women|girls?|mother|daughter|sister|queen|wife|mrs|miss")


def _command(text: str) -> int:
    if is_question(text) == 0:
        return 2
    if _COMMAND.match(text) and len(text) < 160:
        return 0
    return 1 if _SINGULAR.match(text) or _PLURAL.match(text) else UNSURE


def _voice(text: str) -> int:
    if _PASSIVE.search(text):
        return 0
    return 1 if not _BE_DONE.search(text) and tense(text) == 0 else UNSURE


def _time_or_place(text: str) -> int:
    time, place = _TIME.search(text), _PLACE.search(text)
    if time and not place:
        return UNSURE if _THERE.search(text) else 0
    return 1 if place and not time and not _SOON.search(text) else UNSURE


RULES: Final = (
    _rule("asks", 2, is_question, "question statement", "asks tells", "asking stating"),
    _rule("question-word", 7, question_word, *(" ".join(QUESTION_WORDS[:count]) for count in (7, 2, 4, 5))),
    _rule("question-kind", 2, _open_or_closed, "open closed", "explain confirm", "free fixed"),
    _rule("tense", 3, tense, "past present", "past present future", "earlier now later", "was is will", "before now",
          "history today tomorrow"),
    _rule("person", 6, _only(_I, _YOU, _HE, _SHE, _THEY, _WE), "i you he she they we", "i you", "i you he she",
          "me you him her", "self reader man woman people"),
    _rule("sex", 2, _only(_MALE, _FEMALE), "male female", "man woman", "he she", "boy girl"),
    _rule("negation", 2, _present(_NOT, _HALF_NOT), "plain negated", "affirms denies", "with without", "no yes"),
    _rule("number", 2, _present(_DIGIT, _NUMBER_WORD), "none number", "words digits", "text figures", "no yes"),
    _rule("quotation", 2, _present(_QUOTE, _SOME_QUOTE), "plain quoted", "told spoken", "no yes"),
    _rule("plural", 2, _only(_SINGULAR, _PLURAL), "one many", "singular plural", "single several"),
    _rule("comparison", 2, _present(_THAN, _MOST), "describes compares", "single comparison", "no yes"),
    _rule("time-or-place", 2, _time_or_place, "time place", "when where", "date site"),
    _rule("time", 2, _present(_TIME, _SOON), "none time", "timeless dated", "no yes"),
    _rule("place", 2, _present(_PLACE, _THERE), "none place", "anywhere somewhere", "no yes"),
    _rule("connection", 4, _only(_BECAUSE, _IF, _BUT, _WHEN), "reason condition contrast time", "because if but when",
          "cause condition", "reason condition contrast"),
    _rule("modality", 2, _only(_MAY, _MUST), "possible necessary", "may must", "perhaps required"),
    _rule("amount", 3, _only(_ALL, _SOME, _NONE), "all some none", "every several zero", "whole part"),
    _rule("voice", 2, _voice, "passive active", "receives acts"),
    _rule("belief", 2, _only(_RECORD, _THINK), "fact belief", "record feeling", "report opinion"),
    _rule("command", 3, _command, "command statement question", "order claim query", "orders tells"),
    _rule("opening", 3, _only(_ARTICLE, _PRONOUN, _PREPOSITION), "article pronoun preposition", "the it in"),
    _rule("exclamation", 2, _present(_WISH, _CALM), "calm excited", "said shouted", "quiet loud"),
    _rule("list", 2, _present(_LIST, _COMMA), "single list", "one several", "simple series"),
    _rule("aside", 2, _present(_BRACKET, re.compile(r"[()\[\]—–]")), "direct aside", "plain noted", "no yes"),
)  # fmt: skip
