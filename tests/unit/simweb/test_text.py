from __future__ import annotations

import unicodedata
from importlib import resources
from itertools import pairwise

import pytest

from gossamer.errors import UsageError
from gossamer.simweb.sites.draw import key_of
from gossamer.simweb.sites.text import (
    TOPICS,
    Language,
    Topic,
    language,
    languages,
    person,
    rare,
    slug,
    title,
    topic,
)

UI = (
    "home about contact imprint privacy search login register archive latest related more next previous page comments "
    "comment reply print share tags author published updated sections category price cart buy reviews sort_by cheapest "
    "newest filter forum thread reply_count documentation contents edit history calendar events month download report "
    "newsletter not_found sorry terms help sitemap feed links read_more all_rights wire"
)
FORBIDDEN = set("<>&\"'_{}|\u2019\ufeff\u200b")
# Vietnamese writes its words in syllables with spaces between them, Japanese and Chinese without any space.
ONE_SPACE_PER_WORD = [code for code in languages() if code not in {"vi", "ja", "zh"}]

each_language = pytest.mark.parametrize("code", languages())


def everything_said(code: str) -> str:
    """Some of all that a language can say."""
    speech, some = language(code), topic(code, 7)
    keys = [key_of(3, "said", number) for number in range(300)]
    made = [make(speech, key) for make in (rare, person) for key in keys] + [title(some, key) for key in keys]
    return " ".join([speech.name, *speech.ui.values(), some.label, *some.sentences, *made])


def starts_in_lower_case(text: str) -> bool:
    return text[0] != text[0].upper()


def test_the_languages_are_these():
    assert " ".join(languages()) == "ar cs de el en es fi fr he hi it ja ko nl pl pt ru sv tr uk vi zh"


def test_an_unknown_language_is_named_with_the_known_ones():
    with pytest.raises(UsageError, match=r"'tlh'.*ar, cs, de"):
        language("tlh")


@pytest.mark.parametrize("number", [-1, TOPICS])
def test_an_unknown_topic_is_refused(number: int):
    with pytest.raises(UsageError, match="0 to 63"):
        topic("en", number)


@each_language
def test_a_language_is_complete(code: str):
    speech = language(code)
    assert speech.code == code
    assert speech.direction == ("rtl" if code in {"ar", "he"} else "ltr")
    assert speech.joiner == ("" if code in {"ja", "zh"} else " ")
    assert " ".join(speech.ui) == UI
    assert all(text and text == text.strip() for text in (speech.name, speech.stop, speech.comma, *speech.ui.values()))
    assert 50 <= len(speech.function) <= 70
    assert len(speech.nouns) >= TOPICS
    assert len(speech.verbs) >= 40
    assert len(speech.adjectives) >= 40
    assert len(speech.given) >= 12
    assert min(map(len, (speech.starts, speech.middles, speech.endings, speech.family_endings))) >= 8


@each_language
def test_no_list_says_a_word_twice(code: str):
    speech = language(code)
    for name in ("function", "nouns", "verbs", "adjectives", "given"):
        words = getattr(speech, name)
        assert sorted(set(words)) == sorted(words), name


@each_language
def test_a_file_is_composed_unicode_that_its_charsets_can_write(code: str):
    text = (resources.files("gossamer.simweb") / "languages" / f"{code}.toml").read_text(encoding="utf-8")
    assert unicodedata.is_normalized("NFC", text)
    for charset in language(code).charsets:
        assert text.encode(charset).decode(charset) == text


@each_language
def test_shapes_are_made_of_known_letters_and_of_6_to_10_words(code: str):
    speech = language(code)
    for shape in speech.clauses:
        assert set(shape) <= set("FLNVAP")
        assert all(speech.pools[letter] for letter in shape)
        assert 6 <= len(shape.replace("P", "").replace("L", "FF")) <= 10
    for shape in speech.titles:
        assert set(shape) <= set("FNVATR")
        assert (shape.count("T"), shape.count("R")) == (2, 1)
        assert 3 <= len(shape) <= 8


@each_language
def test_all_that_is_said_fits_its_charsets_and_needs_no_escapes(code: str):
    said = everything_said(code)
    assert not FORBIDDEN & set(said)
    for charset in language(code).charsets:
        assert said.encode(charset).decode(charset) == said


@each_language
def test_a_topic_has_1024_sentences_with_start_and_end(code: str):
    speech, some = language(code), topic(code, 11)
    assert len(some.sentences) == 1024
    assert len(set(some.sentences)) > 1000
    assert all(sentence.endswith(speech.stop) for sentence in some.sentences)
    assert not speech.capitals or not any(map(starts_in_lower_case, some.sentences))
    assert 200 < sum(speech.comma in sentence for sentence in some.sentences) < 800


@pytest.mark.parametrize("code", ONE_SPACE_PER_WORD)
def test_sentences_have_6_to_20_words_and_stutter_rarely(code: str):
    split = [sentence.lower().rstrip(language(code).stop).split() for sentence in topic(code, 5).sentences]
    assert all(6 <= len(words) <= 20 for words in split)
    stutters = sum(a == b for words in split for a, b in pairwise(words))
    assert stutters < 100


@each_language
def test_sentences_speak_of_their_topic(code: str):
    some = topic(code, 23)
    on_topic = [sentence for sentence in some.sentences if any(word in sentence for word in some.words)]
    assert len(on_topic) > 900


@each_language
def test_topics_have_20_words_that_hardly_any_other_has(code: str):
    topics = [topic(code, number) for number in range(0, TOPICS, 4)]
    vocabularies = [set(some.words) for some in topics]
    assert all(len(words) == 20 for words in vocabularies)
    assert len({some.label for some in topics}) == len(topics)
    pairs = [(a, b) for at, a in enumerate(vocabularies) for b in vocabularies[:at]]
    assert max(len(a & b) for a, b in pairs) <= 8
    assert sum(len(a & b) for a, b in pairs) < 3 * len(pairs)


@each_language
def test_titles_are_distinct_and_name_two_words_of_the_topic(code: str):
    speech, some = language(code), topic(code, 2)
    titles = {title(some, key_of(9, number)) for number in range(10_000)}
    assert len(titles) >= 9_900
    for number in range(200):
        key = key_of(9, number)
        made = title(some, key).lower().replace("i\u0307", "i")
        assert rare(speech, key).lower() in made
        assert sum(word.lower() in made for word in some.words) >= 2
        assert not speech.capitals or not starts_in_lower_case(title(some, key))


@each_language
def test_names_and_rare_words_vary(code: str):
    speech = language(code)
    assert len({rare(speech, key) for key in range(2_000)}) > 1_500
    assert len({person(speech, key) for key in range(2_000)}) > 800


@each_language
def test_slugs_of_titles_are_path_segments(code: str):
    speech, some = language(code), topic(code, 40)
    for key in range(300):
        made = slug(speech, title(some, key))
        assert 0 < len(made) <= 60
        assert made == made.strip("-").lower()
        assert not set(made) & set(" /?#%.")
        assert made.isascii() == (code not in {"ar", "he", "hi", "ja", "ko", "zh"})


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("en", "The Market, again: 24 reports!", "the-market-again-24-reports"),
        ("de", "Große Straße über Öl", "grosse-strasse-uber-ol"),
        ("fr", "À l’œuvre, déjà", "a-l-oeuvre-deja"),
        ("sv", "Åsa & Ørn", "asa-orn"),
        ("pl", "Żółta łąka", "zolta-laka"),
        ("tr", "İstanbul Işık ılık", "istanbul-isik-ilik"),
        ("vi", "Đường sắt Việt", "duong-sat-viet"),
        ("ru", "Щука и подъезд ёлки", "shchuka-i-podezd-elki"),
        ("uk", "Її ґанок", "ii-ganok"),
        ("el", "Ο Ψηλός ΚΟΣΜΟΣ", "o-psilos-kosmos"),
        ("he", "שוק, חדש", "שוק-חדש"),
        ("hi", "हिन्दी में।", "हिन्दी-में"),
        ("ja", "市場の、価格。", "市場の-価格"),
        ("ko", "시장의 물", "시장의-물"),
        ("en", "cafe\u0301 au lait", "cafe-au-lait"),
        ("en", "!?", ""),
        ("en", "word " * 20, "-".join(["word"] * 12)),
        ("ja", "市" * 70, "市" * 60),
        ("en", "a" * 60 + " b", "a" * 60),
    ],
)
def test_slug(code: str, text: str, expected: str):
    assert slug(language(code), text) == expected


def test_korean_particles_follow_the_last_sound():
    said = " ".join(topic("ko", 0).sentences)
    assert "시장은" in said
    assert "시장는" not in said
    assert "|" not in said


def test_turkish_has_its_own_capital():
    assert not [sentence for sentence in topic("tr", 0).sentences if sentence.startswith("Için")]


def sample(some: Topic, speech: Language) -> list[str]:
    return [title(some, 42), some.sentences[0], some.sentences[1023], person(speech, 42), rare(speech, 42)]


GOLDEN = {
    "en": [
        "Than old science which planet Dorerleyby",
        "One wood called a single computer, family includes after school of single window.",
        "And family leads of he summer with coffee, we single window begins not theatre.",
        "Karen Marson",
        "dorerleyby",
    ],
    "ru": [
        "Также старый наука то страхование Журерводание",
        "Общий долина означает стекло и река.",
        "Она уралникистание открывает чтобы целый власть, зелёный уралникистание играл гора в компьютер.",
        "Ольга Холов",
        "журерводание",
    ],
    "ja": [
        "科学のタルカドトとは議会",
        "保険から南のフェロスも支えています、選挙もの神社ようなマルロバーラを届きます。",
        "川の古い音楽で書きました、南のフェロスから橋に信じています。",
        "森田直美",
        "タルカドト",
    ],
}


@pytest.mark.parametrize("code", GOLDEN)
def test_the_same_bytes_everywhere(code: str):
    assert sample(topic(code, 3), language(code)) == GOLDEN[code]
