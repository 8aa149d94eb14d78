r"""Text for LaTeX: every character appears unchanged with pdfTeX, XeTeX and LuaTeX alike.

Characters that LaTeX interprets are replaced by commands, letters with accents by their base letter and an
accent, and symbols by commands that need no package. A character without a command is typeset as its code
point (`U+4E2D`), because pdfTeX would end with an error there. Source of the commands: L. Lamport, LaTeX: A
Document Preparation System, 2nd edition, 1994, sections 2.2 and 3.2; The LaTeX Project, usrguide, 2023.
"""

from __future__ import annotations

import re
import unicodedata

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "`": r"\char96{}",
}
_SYMBOLS = {
    "µ": r"\textmu{}",
    "μ": r"\textmu{}",
    "°": r"$^\circ$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "÷": r"$\div$",
    "·": r"$\cdot$",
    "−": r"$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "∞": r"$\infty$",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "²": r"$^2$",
    "³": r"$^3$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "§": r"\S{}",
    "©": r"\copyright{}",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
    "\N{NO-BREAK SPACE}": "~",
}
#: Greek letters of mathematics by Unicode names: `GREEK SMALL LETTER ALPHA` is `\\alpha`.
_GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (\w+)")
_CAPITALS = ("GAMMA", "DELTA", "THETA", "LAMDA", "XI", "PI", "SIGMA", "UPSILON", "PHI", "PSI", "OMEGA")
_SMALL = (
    *("ALPHA", "BETA", "DELTA", "EPSILON", "ZETA", "ETA", "IOTA", "KAPPA", "NU", "RHO", "TAU", "CHI"),
    *_CAPITALS,
)
#: Combining characters, and the accents that LaTeX puts over or under the letter before.
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
    "\u0328": "k",
}
#: Neighbours that fonts join to another character: `--` is a dash, `?` and a grave accent a turned `?`.
_JOINED = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)")


def escape(text: str) -> str:
    """The text in LaTeX, in braces where a command would take what follows as its argument."""
    parts = (_escape_letter(letter) for letter in _JOINED.sub("\0", text))
    return "".join(parts)


def _escape_letter(letter: str) -> str:
    if letter == "\0":
        return "{}"
    command = _SPECIAL.get(letter) or _SYMBOLS.get(letter)
    if command is not None:
        return command
    if " " <= letter <= "~":
        return letter
    greek = _GREEK.fullmatch(unicodedata.name(letter, ""))
    if greek is not None and (greek[2] in _CAPITALS if greek[1] == "CAPITAL" else greek[2] in _SMALL):
        name = greek[2].lower().replace("lamda", "lambda")
        return f"$\\{name.capitalize() if greek[1] == 'CAPITAL' else name}$"
    apart = unicodedata.normalize("NFD", letter)
    base, mark = apart[:1], apart[1:]
    if mark in _ACCENTS and base.isascii() and base.isalpha():
        base = {"i": r"\i", "j": r"\j"}.get(base, base) if mark not in "\u0327\u0328" else base
        return f"{{\\{_ACCENTS[mark]}{{{base}}}}}"
    return rf"\texttt{{U+{ord(letter):04X}}}"
