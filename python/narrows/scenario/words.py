"""Words of a scenario that results show: titles, questions, labels, names.

They are validated by the same rule (narrows.text.is_hidden) that campaigns are read back with, so everything
that can be planned can be read.
"""

from __future__ import annotations

import unicodedata

from narrows.scenario.problems import Wrong
from narrows.scenario.yaml_tree import Mark, Node, Scalar
from narrows.text import has_hidden, is_hidden, name_letter

#: White space that may separate the words of a sentence.
_SPACES = " \t\r\n"


def read_sentence(value: Node, otherwise: str) -> str:
    """The text of a value on one line, with white space as single spaces.

    Raises `Wrong`: with `otherwise` if it is not text, and with the place of an invisible character.
    """
    return " ".join(_text(value, otherwise, _SPACES).split())


def read_label(value: Node, otherwise: str, most: int) -> str:
    """A text of at most `most` characters, all of them visible. Raises `Wrong` like `read_sentence`."""
    text = _text(value, otherwise)
    if len(text) > most:
        raise Wrong(value.mark, otherwise)
    return text


def _text(value: Node, otherwise: str, spaces: str = " ") -> str:
    if not isinstance(value, Scalar) or value.is_null:
        raise Wrong(value.mark, otherwise)
    check_visible(value.mark, value.text, spaces)
    # Accents and variation selectors without a base letter modify letters that are missing.
    if all(letter.isspace() or unicodedata.category(letter)[0] == "M" for letter in value.text):
        raise Wrong(value.mark, otherwise)
    return value.text


def check_visible(mark: Mark, text: str, spaces: str = " ") -> None:
    """Raises `Wrong` with the first invisible character of a text, except for these spaces."""
    if not has_hidden(text):
        return
    for number, letter in enumerate(text, 1):
        if is_hidden(letter) and letter not in spaces:
            remedy = "write a space" if letter.isspace() else "remove it"
            raise Wrong(mark, f"character {number} is {name_letter(letter)}, which can't be seen; {remedy}")
