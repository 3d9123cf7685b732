"""Text as people and models get to see it: it does nothing to a terminal, and holds nothing that no reader sees."""

from __future__ import annotations

import json
import re

# Terminal escapes are in C0 and C1; the rest reorders or breaks lines (bidirectional overrides, line separators). Lone
# surrogates are bytes that are not UTF-8 and cannot be printed.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
# What no person sees, so that a text for a machine hides in it: soft hyphens, spaces without width, fillers, tags.
_INVISIBLE = (
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Invisible as well, and a part of ordinary writing in the right place: joiners of Persian, of the scripts of India and
# of emoji; selectors of a variant of the character before.
_JOINERS = "\u200c\u200d"
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f"
_HIDDEN = f"{_CONTROLS}{_INVISIBLE}{_JOINERS}"
_SEEN = rf"[^\x00-\x7f{_HIDDEN}{_SELECTORS}]"
_FINE = re.compile(
    "|".join(
        (
            rf"(?:(?<={_SEEN})|(?<={_SEEN}\ufe0f))[{_JOINERS}](?![{_HIDDEN}])",
            rf"(?<=[!-~])[{_JOINERS}](?={_SEEN})",
            rf"(?:(?<={_SEEN})|(?<=[0-9#*]))[\ufe00-\ufe0f]",
            r"(?<=[\u1800-\u180a\u1810-\u18af])[\u180b-\u180d\u180f]",
            r"(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]",
        )
    )
)
_BLACK_FLAG = "\U0001f3f4"
# England, Scotland and Wales.
_FLAGS = tuple(
    _BLACK_FLAG + "".join(chr(0xE0000 + ord(letter)) for letter in name) + "\U000e007f"
    for name in ("gbeng", "gbsct", "gbwls")
)
_IN_TEXT = re.compile(f"[{_HIDDEN}{_SELECTORS}]")
_IN_LINE = re.compile(f"[{_HIDDEN}{_SELECTORS}\t\n]")
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def harmless(text: str) -> str:
    """Text that is safe on a terminal and hides nothing from a reader: what cannot be seen is spelled (``\\x1b``).

    The one rule for people and for models; docs/cli.md states it.
    """
    return _IN_TEXT.sub(_spell, text)


def harmless_line(text: str) -> str:
    """The same for one line, such as a path."""
    return _IN_LINE.sub(_spell, text)


def _is_fine(match: re.Match[str]) -> bool:
    """Whether a character that is not seen is part of ordinary writing where it stands."""
    text, at = match.string, match.start()
    if _FINE.match(text, at):
        return True
    flag = text.rfind(_BLACK_FLAG, max(0, at - len(_FLAGS[0])), at)
    return flag >= 0 and text.startswith(_FLAGS, flag) and at < flag + len(_FLAGS[0])


def _spell(match: re.Match[str]) -> str:
    char = match.group()
    if _is_fine(match):
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # how Python carries a byte of a file name that is not UTF-8
        code -= 0xDC00
    if char in _SHORT:
        return _SHORT[char]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escape_hidden(text: str) -> str:
    """JSON that means the same, with what :func:`harmless` spells as JSON escapes."""
    return _IN_TEXT.sub(lambda match: match.group() if _is_fine(match) else json.dumps(match.group())[1:-1], text)
