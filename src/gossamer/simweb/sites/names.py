"""Host names: a site's number ⇄ a pronounceable label, one to one and without a table."""

from __future__ import annotations

from math import gcd

from gossamer.simweb.sites.draw import key_of

SYLLABLES = tuple(consonant + vowel for consonant in "bdfghjklmnprstvwzcxy" for vowel in "aeiou")
_PLACES = {syllable: place for place, syllable in enumerate(SYLLABLES)}


class Names:
    """The labels of `count` sites under a seed."""

    def __init__(self, seed: int, count: int) -> None:
        self.count = count
        self.syllables = 3
        while len(SYLLABLES) ** self.syllables < count * 2:
            self.syllables += 1
        self.modulus = len(SYLLABLES) ** self.syllables
        self.factor = key_of(seed, "names") % self.modulus | 1
        while gcd(self.factor, self.modulus) != 1:
            self.factor = (self.factor + 2) % self.modulus
        self.shift = key_of(seed, "shift") % self.modulus
        self.inverse = pow(self.factor, -1, self.modulus)

    def label(self, site: int) -> str:
        """The label of a site."""
        rest, syllables = (site * self.factor + self.shift) % self.modulus, []
        for _ in range(self.syllables):
            rest, place = divmod(rest, len(SYLLABLES))
            syllables.append(SYLLABLES[place])
        return "".join(syllables)

    def site(self, label: str) -> int | None:
        """The site a label belongs to, if there is one."""
        if len(label) != 2 * self.syllables:
            return None
        number = 0
        for start in range(len(label) - 2, -1, -2):
            place = _PLACES.get(label[start : start + 2])
            if place is None:
                return None
            number = number * len(SYLLABLES) + place
        site = (number - self.shift) * self.inverse % self.modulus
        return site if site < self.count else None
