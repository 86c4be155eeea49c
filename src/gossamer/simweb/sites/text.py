"""Words of 22 languages → topics, sentences, titles, names and slugs of the simulated web.

A page has 200 µs, so its text is not made but chosen: a topic holds 1024 whole sentences, the same in every web, and a page's key says
which of them it shows. What must be its own, a title or a name, gets a rare word built of the language's syllables.
The lists are in languages/*.toml, words separated by white space ("_" is a space within a word). The shapes of sentences are strings of
one letter per word: F function word, L two of them as they often meet, N noun, V verb, A adjective; P is a particle that clings to the
word before it, and a comma itself. Titles also have T, a word of the topic, and R, a rare one.
"""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

from gossamer.errors import UsageError
from gossamer.simweb.sites.draw import below, chance, key_of, numbers, pick

TOPICS = 64
SENTENCES = 1024
WORDS = 20

# Clauses of 6 to 9 words: one or two make a sentence.
CLAUSES = "FNVFAN FANVFN NVFNFAN FNFNVFAN FNVFFNFN FANVFNFN FFNVFANFN FNVAFNFN"
TITLES = "RTT TFTR RTFT FTVRFT FATFTR RVFTFAT FTFTVRFN TRFNFT NFTRT ATFRT"

# Keeps the draws of one page's title, names and sentences apart when they are made from one key.
TITLE_SALT = 0x7469746C65
RARE_SALT = 0x72617265
PERSON_SALT = 0x706572736F6E

# Letters that Unicode does not take apart into a Latin letter and a mark.
PLAIN = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "\u0131": "i"}
SLUG_LENGTH = 60


@dataclass(frozen=True, eq=False, slots=True)
class Language:
    """One language's words and habits; there is one object per code, so it compares and hashes by identity."""

    code: str
    name: str
    direction: str
    joiner: str
    stop: str
    comma: str
    capitals: bool
    charsets: tuple[str, ...]
    function: tuple[str, ...]
    nouns: tuple[str, ...]
    verbs: tuple[str, ...]
    adjectives: tuple[str, ...]
    starts: tuple[str, ...]
    middles: tuple[str, ...]
    endings: tuple[str, ...]
    family_starts: tuple[str, ...]
    family_endings: tuple[str, ...]
    given: tuple[str, ...]
    pairs: tuple[str, ...]
    particles: tuple[str, ...]
    clauses: tuple[str, ...]
    titles: tuple[str, ...]
    person: str
    upper: Mapping[str, str]
    latin: Mapping[str, str]
    ui: Mapping[str, str]
    pools: Mapping[str, tuple[str, ...]]
    folding: dict[int, str]


@dataclass(frozen=True, eq=False, slots=True)
class Topic:
    """What a page is about: its own vocabulary and the sentences its pages choose from."""

    language: Language
    number: int
    label: str
    words: tuple[str, ...]
    sentences: tuple[str, ...]


class Folding(dict[int, str]):
    """Lower-case letters → what stands for them in a slug, found once per letter."""

    def __missing__(self, code: int) -> str:
        """Latin without its marks, other letters and digits as they are, and a space for all else."""
        letter = chr(code)
        plain = "".join(c for c in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(c))
        if plain.isascii() and plain.isalnum():
            found = plain.lower()
        elif 0x300 <= code < 0x370:
            found = ""
        else:
            found = letter if letter.isalnum() or unicodedata.category(letter)[0] == "M" else " "
        self[code] = found
        return found


@cache
def languages() -> tuple[str, ...]:
    """The codes of all languages, sorted."""
    names = (file.name for file in (resources.files("gossamer.simweb") / "languages").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


@cache
def language(code: str) -> Language:
    """The language with this code."""
    if code not in languages():
        raise UsageError(f"no language {code!r} in the simulated web; choose from {', '.join(languages())}")
    file = resources.files("gossamer.simweb") / "languages" / f"{code}.toml"
    raw = tomllib.loads(file.read_text(encoding="utf-8"))

    def words(name: str, default: str = "") -> tuple[str, ...]:
        return tuple(word.replace("_", " ") for word in raw.get(name, default).split())

    function, latin = words("function"), raw.get("latin", {})
    parts = {
        "V": words("verbs"),
        "A": words("adjectives"),
        "N": words("nouns"),
        "P": words("particles"),
        "L": words("pairs"),
    }
    return Language(
        code=raw["code"],
        name=raw["name"],
        direction=raw["direction"],
        joiner=raw["joiner"],
        stop=raw["stop"],
        comma=raw["comma"],
        capitals=raw["capitals"],
        charsets=tuple(raw["charsets"]),
        function=function,
        nouns=parts["N"],
        verbs=parts["V"],
        adjectives=parts["A"],
        starts=words("starts"),
        middles=words("middles"),
        endings=words("endings"),
        family_starts=words("family_starts") or words("starts"),
        family_endings=words("family_endings") or words("endings"),
        given=words("given"),
        pairs=parts["L"],
        particles=parts["P"],
        clauses=words("clauses", CLAUSES),
        titles=words("titles", TITLES),
        person=raw.get("person", "{given} {family}"),
        upper=raw.get("upper", {}),
        latin=latin,
        ui=raw["ui"],
        pools={"F": tuple(_by_frequency(function)), **parts},
        folding=Folding({ord(letter): plain for letter, plain in (PLAIN | latin).items()}),
    )


def _by_frequency(words: Iterable[str]) -> Iterable[str]:
    """Each word as often as its rank deserves by Zipf."""
    for rank, word in enumerate(words):
        yield from [word] * (1 + 240 // (rank + 3))


@lru_cache(maxsize=512)
def topic(code: str, number: int) -> Topic:
    """Topic `number` (0 … 63) of a language, the same in every web."""
    if not 0 <= number < TOPICS:
        raise UsageError(f"no topic {number} in the simulated web; choose from 0 to {TOPICS - 1}")
    speech = language(code)
    key = key_of(0, "topic", code, number)
    first = speech.nouns[number]
    nouns = [first, *_sample(key, [noun for noun in speech.nouns if noun != first], 9)]
    adjectives = _sample(key ^ 1, [each for each in speech.adjectives if each not in nouns], 5)
    built = [rare(speech, key_of(1, "topic", code, number, each)) for each in range(WORDS - 15)]
    # Half of the nouns and of the adjectives of a sentence are the topic's.
    pools = {
        **speech.pools,
        "N": (*nouns, *built) * (len(speech.nouns) // 15) + speech.nouns,
        "A": tuple(adjectives) * (len(speech.adjectives) // 5) + speech.adjectives,
    }
    return Topic(
        language=speech,
        number=number,
        label=_capital(speech, first),
        words=(*nouns, *adjectives, *built),
        sentences=tuple(_all_sentences(speech, pools, key)),
    )


def _sample(key: int, among: Sequence[str], count: int) -> list[str]:
    """`count` different ones of `among`."""
    rest = list(among)
    return [rest.pop(below(number, len(rest))) for number in numbers(key, count)]


def _all_sentences(speech: Language, pools: Mapping[str, tuple[str, ...]], key: int) -> Iterable[str]:
    """All sentences of a topic: one clause, or two with or without a comma between them."""
    width = 32
    draws = numbers(key, SENTENCES * width)
    for at in range(0, len(draws), width):
        kind, first, second = draws[at : at + 3]
        shape = pick(first, speech.clauses)
        if not chance(kind, 350_000):
            shape += ("," if chance(kind, 800_000) else "") + pick(second, speech.clauses)
        yield _capital(speech, _words(speech, pools, shape, draws[at + 3 : at + width])) + speech.stop


def _words(speech: Language, pools: Mapping[str, tuple[str, ...]], shape: str, draws: Sequence[int]) -> str:
    """Words put together after `shape`."""
    words: list[str] = []
    last = ""
    for letter, number in zip(shape, draws, strict=False):
        if letter == ",":
            words[-1] += speech.comma
            continue
        pool = pools[letter]
        at = number * len(pool) >> 32
        if letter == "P":
            words[-1] = _with_particle(words[-1], pool[at])
            continue
        if pool[at] == last:
            at -= len(pool) // 2 + 1
        last = pool[at]
        words.append(last)
    return speech.joiner.join(words)


def _with_particle(word: str, particle: str) -> str:
    """A word with its particle; of two forms "a|b" the first follows a final consonant, as Korean wants it."""
    closed, _, opened = particle.partition("|")
    ends_open = opened and "가" <= word[-1] <= "힣" and (ord(word[-1]) - ord("가")) % 28 == 0
    return word + (opened if ends_open else closed)


def _capital(speech: Language, text: str) -> str:
    """The text with a capital at its start, if the language has capitals."""
    if not speech.capitals:
        return text
    return (speech.upper.get(text[0]) or text[0].upper()) + text[1:]


def title(topic: Topic, key: int) -> str:
    """A title of 3 to 8 words that hardly any other key has: two words of the topic and a rare one among them."""
    speech = topic.language
    draws = numbers(key ^ TITLE_SALT, 12)
    here = below(draws[1], WORDS)
    there = (here + 1 + below(draws[2], WORDS - 1)) % WORDS
    words = []
    for letter, number in zip(pick(draws[0], speech.titles), draws[3:], strict=False):
        if letter == "T":
            words.append(topic.words[here])
            here, there = there, here
        elif letter == "R":
            words.append(_capital(speech, rare(speech, key)))
        else:
            words.append(pick(number, speech.pools[letter]))
    return _capital(speech, speech.joiner.join(words))


def rare(language: Language, key: int) -> str:
    """A word the language might have: a start, one or two middles and an ending."""
    kind, start, first, second, end = numbers(key ^ RARE_SALT, 5)
    middle = pick(first, language.middles)
    if chance(kind, 400_000):
        middle += pick(second, language.middles)
    return pick(start, language.starts) + middle + pick(end, language.endings)


def person(language: Language, key: int) -> str:
    """A given name and a family name, in the language's order."""
    given, start, end = numbers(key ^ PERSON_SALT, 3)
    family = _capital(language, pick(start, language.family_starts) + pick(end, language.family_endings))
    return language.person.format(given=pick(given, language.given), family=family)


def slug(language: Language, text: str) -> str:
    """A title as a path segment: Latin letters where the language allows it, words joined by "-", 60 characters at most."""
    whole = "-".join(text.lower().translate(language.folding).split())
    if len(whole) <= SLUG_LENGTH:
        return whole
    return whole[: SLUG_LENGTH + 1].rpartition("-")[0] or whole[:SLUG_LENGTH]
