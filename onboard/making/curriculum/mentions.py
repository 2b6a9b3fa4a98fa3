"""Kinds of things that a text may mention, each with a list of common words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Mention:
    """One kind of thing.

    Args:
        words: label words for it.
        things: words that count as a mention.
    """

    words: tuple[str, ...]
    things: str


MENTIONS: Final = (
    Mention(
        ("animal", "creature"),
        "dog cat horse cow bird fish lion tiger bear elephant snake monkey rabbit sheep wolf chicken duck pig "
        "insect whale deer frog goat puppy kitten animal animals",
    ),
    Mention(("color", "shade"), "red blue green yellow purple pink brown gray grey orange"),
    Mention(
        ("food", "meal"),
        "bread cheese meat rice soup cake egg eggs potato potatoes onion butter sugar salt chocolate fruit "
        "dinner lunch breakfast vegetable vegetables pizza food",
    ),
    Mention(
        ("family", "relative"),
        "mother father brother sister son daughter uncle aunt cousin grandmother grandfather wife husband parents",
    ),
    Mention(
        ("vehicle", "traffic"),
        "car cars bus train truck bicycle bike motorcycle plane airplane aircraft boat ship taxi",
    ),
    Mention(
        ("music", "songs"),
        "song songs music piano guitar violin band singer album orchestra concert drum opera flute",
    ),
    Mention(("weather", "climate"), "rain snow storm wind sunny cloudy fog hurricane thunder weather flood"),
    Mention(
        ("body", "anatomy"),
        "hand hands eye eyes leg legs arm arms hair skin heart blood bone bones stomach shoulder face",
    ),
    Mention(
        ("money", "finance"),
        "dollar dollars money price prices bank cost costs salary profit cash loan tax taxes",
    ),
    Mention(("war", "battle"), "war army battle soldier soldiers troops military weapon weapons bomb invasion"),
    Mention(("school", "education"), "school teacher student students university college exam class degree classroom"),
    Mention(("religion", "faith"), "church god prayer bishop priest bible temple mosque pope saint religion religious"),
    Mention(
        ("sport", "sports"),
        "football soccer baseball basketball tennis golf cricket goal goals coach team teams league",
    ),
    Mention(("law", "justice"), "court judge law lawyer police prison crime trial jury guilty arrested sentenced"),
    Mention(
        ("computer", "software"),
        "computer computers software internet website programming android laptop app apps google facebook",
    ),
    Mention(
        ("medicine", "health"),
        "doctor hospital disease patients medicine drug drugs cancer surgery nurse treatment virus",
    ),
    Mention(("plant", "garden"), "tree trees flower flowers grass leaf leaves forest plants seeds roots"),
    Mention(("clothes", "clothing"), "shirt dress hat shoes coat jacket clothes trousers gloves uniform"),
    Mention(("building", "house"), "house building bridge tower castle roof wall walls room rooms apartment"),
    Mention(
        ("politics", "government"),
        "president minister election parliament government senate vote voters party senator",
    ),
    Mention(("film", "cinema"), "film films movie movies actor actress scene scenes director screenplay comedy"),
    Mention(("book", "literature"), "book books novel novels poem author writer chapter poetry"),
    Mention(
        ("science", "research"),
        "physics chemistry atom energy molecule equation theory mathematics electron biology",
    ),
    Mention(("water", "waters"), "river lake ocean sea water beach waves"),
)

_KIND_OF: Final = {thing: place for place, mention in enumerate(MENTIONS) for thing in mention.things.split()}
_WORD: Final = re.compile(r"[a-z]+")


def mentioned(text: str) -> int:
    """Return the index in MENTIONS of the only kind that the text mentions, -1 for none or several."""
    kinds = {_KIND_OF[word] for word in _WORD.findall(text.lower()) if word in _KIND_OF}
    return kinds.pop() if len(kinds) == 1 else -1
