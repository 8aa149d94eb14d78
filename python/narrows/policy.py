"""The Content-Security-Policy of our pages: only our scripts run, and only our styles apply.

Each script and style element is allowed by its hash (CSP level 2). Style attributes, which drawings have on
every mark, can't be allowed by hash: they become classes, whose rules form another style element. Markup in a
scenario's name that reached the page would therefore neither run nor change its appearance.
"""

from __future__ import annotations

import base64
import hashlib
import re

#: The placeholder in templates for the hashes of their elements.
STYLES, SCRIPTS = "'styles'", "'scripts'"
_ELEMENT = re.compile(r"(<(script|style)\b([^>]*)>)(.*?)</\2>", re.DOTALL)
_TAG = re.compile(r"<[A-Za-z][^<>]*\sstyle=\"[^\"<>]*\"[^<>]*>")
_STYLE = re.compile(r"\sstyle=\"([^\"]*)\"")
_CLASS = re.compile(r"\sclass=\"([^\"]*)\"")
#: Types of scripts that contain data and never run.
_DATA = ('type="text/plain"', 'type="application/json"')
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="[^"]*">')


def lock(page: str) -> str:
    """A complete page whose policy has the hashes of its elements."""
    page = _without_style_attributes(page)
    hashes: dict[str, dict[str, None]] = {"style": {}, "script": {}}
    for _, kind, attributes, content in _ELEMENT.findall(page):
        if content and not any(data in attributes for data in _DATA):
            hashes[kind][_source(content)] = None

    def fill(policy: re.Match[str]) -> str:
        text = policy[0]
        for mark, kind in ((STYLES, "style"), (SCRIPTS, "script")):
            # A directive without sources allows nothing.
            text = text.replace(mark, " ".join(hashes[kind]))
        return text

    return _POLICY.sub(fill, page, count=1)


def _source(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _without_style_attributes(page: str) -> str:
    names: dict[str, str] = {}

    def add_class(tag: re.Match[str]) -> str:
        text = tag[0]
        style = _STYLE.search(text)
        assert style is not None
        rule = " ".join(style[1].split())
        name = names.setdefault(rule, f"s{len(names)}")
        text = text[: style.start()] + text[style.end() :]
        if _CLASS.search(text):
            return _CLASS.sub(lambda own: f' class="{own[1]} {name}"', text, count=1)
        head = re.match(r"<[^\s/>]+", text)
        assert head is not None
        return f'{head[0]} class="{name}"{text[head.end() :]}'

    parts, at = [], 0
    for element in _ELEMENT.finditer(page):
        parts += [_TAG.sub(add_class, page[at : element.start()]), element[0]]
        at = element.end()
    page = "".join((*parts, _TAG.sub(add_class, page[at:])))
    if not names:
        return page
    rules = "\n".join(f".{name} {{ {_unescape(rule)} }}" for rule, name in names.items())
    return page.replace("</head>", f"<style>\n{rules}\n</style>\n</head>", 1)


def _unescape(rule: str) -> str:
    import html

    # Markup could end the element; neither Narrows' nor Matplotlib's values contain any.
    return html.unescape(rule).replace("<", "").replace("{", "").replace("}", "")
