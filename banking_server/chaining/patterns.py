"""Regular expressions of ECMA-262 (flag `u`), for an engine that reads another syntax.

JSON Schema has `pattern` as ECMA-262. The engine's own syntax has other escapes, other classes and
more flags, so each expression is read here, refused if ECMA-262 has no such syntax, and written
anew: `\\d` becomes `[0-9]`, `.` leaves out all four ends of a line. What the engine would read
otherwise and cannot be told is refused as well. The reader also counts how much work there is.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import dropwhile
from typing import Final

MAX_SIZE: Final = 20_000
"""Characters of a regular expression with its counted repetitions written out."""

MAX_COMPILING: Final = 150_000
"""Units of some 0.3 microseconds that it may take to compile a regular expression."""

MAX_LENGTH: Final = 10_000
MAX_DEPTH: Final = 50

_CLASSES: Final = {
    "d": "09",
    "w": "09AZ__az",
    "s": "\t\r  \u00a0\u00a0\u1680\u1680\u2000\u200a\u2028\u2029\u202f\u202f\u205f\u205f"
    "\u3000\u3000\ufeff\ufeff",
}
"""What the classes consist of: the first and the last character of each range, in order."""
_WORD: Final = "[0-9A-Za-z_]"
_ANY: Final = r"\x{0}-\x{10FFFF}"
_CONTROLS: Final = {"f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_SYNTAX: Final = frozenset("^$\\.*+?()[]{}|/")

_PUNCTUATION: Final = frozenset("^$\\.*+?()[]{}|/-_@ \"'#%&,:;=!~`")

_COUNTED: Final = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_HEX: Final = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{0*([0-9A-Fa-f]{1,6})\}")
_LOW: Final = re.compile(r"\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"c([A-Za-z])|0(?![0-9])")
_REFERENCE: Final = re.compile(r"([1-9][0-9]{0,4})|k<([^>]*)>")
_NAME: Final = re.compile(r"<([^>]+)>")
_PROPERTY: Final = re.compile(
    r"[pP]\{(?:(General_Category|gc|Script|sc|Script_Extensions|scx)=)?([A-Za-z0-9_]+)\}"
)
_SCRIPT: Final = re.compile(r"(?!Is)[A-Z][A-Za-z]+(?:_[A-Z][A-Za-z]+)*")
_CATEGORIES: Final = re.compile(
    "C|Other|Cc|Control|cntrl|Cf|Format|Cn|Unassigned|Co|Private_Use|Cs|Surrogate|L|Letter|LC|"
    "Cased_Letter|Ll|Lowercase_Letter|Lm|Modifier_Letter|Lo|Other_Letter|Lt|Titlecase_Letter|"
    "Lu|Uppercase_Letter|M|Mark|Combining_Mark|Mc|Spacing_Mark|Me|Enclosing_Mark|Mn|"
    "Nonspacing_Mark|N|Number|Nd|Decimal_Number|digit|Nl|Letter_Number|No|Other_Number|P|"
    "Punctuation|punct|Pc|Connector_Punctuation|Pd|Dash_Punctuation|Pe|Close_Punctuation|Pf|"
    "Final_Punctuation|Pi|Initial_Punctuation|Po|Other_Punctuation|Ps|Open_Punctuation|S|"
    "Symbol|Sc|Currency_Symbol|Sk|Modifier_Symbol|Sm|Math_Symbol|So|Other_Symbol|Z|Separator|"
    "Zl|Line_Separator|Zp|Paragraph_Separator|Zs|Space_Separator"
)
_PROPERTIES: Final = re.compile(
    "ASCII|Any|Assigned|ASCII_Hex_Digit|AHex|Alphabetic|Alpha|Bidi_Control|Bidi_C|"
    "Case_Ignorable|CI|Cased|Changes_When_Casefolded|CWCF|Changes_When_Casemapped|CWCM|"
    "Changes_When_Lowercased|CWL|Changes_When_Titlecased|CWT|Changes_When_Uppercased|CWU|Dash|"
    "Default_Ignorable_Code_Point|DI|Deprecated|Dep|Diacritic|Dia|Emoji|Emoji_Component|EComp|"
    "Emoji_Modifier|EMod|Emoji_Modifier_Base|EBase|Emoji_Presentation|EPres|"
    "Extended_Pictographic|ExtPict|Extender|Ext|Grapheme_Base|Gr_Base|Grapheme_Extend|Gr_Ext|"
    "Hex_Digit|Hex|ID_Continue|IDC|ID_Start|IDS|Ideographic|Ideo|Join_Control|Join_C|"
    "Logical_Order_Exception|LOE|Lowercase|Lower|Math|Noncharacter_Code_Point|NChar|"
    "Pattern_Syntax|Pat_Syn|Pattern_White_Space|Pat_WS|Quotation_Mark|QMark|Radical|"
    "Regional_Indicator|RI|Sentence_Terminal|STerm|Soft_Dotted|SD|Terminal_Punctuation|Term|"
    "Unified_Ideograph|UIdeo|Uppercase|Upper|Variation_Selector|VS|White_Space|space|"
    "XID_Continue|XIDC|XID_Start|XIDS"
)


class NotReadable(Exception):
    """The text is no regular expression of ECMA-262, or none that the engine can be given."""


@dataclass(frozen=True)
class Pattern:
    """A regular expression, or a part of one, in the engine's syntax; and how much work it is."""

    text: str
    size: int = 0
    """Its characters and classes, with counted repetitions written out."""
    compiling: int = 0
    """How long it takes to compile, in units of some 0.3 microseconds."""
    ways: int | None = 0
    """It can match at one place in `length ** ways` ways; None if there is no such bound."""
    linear: bool = True
    """It neither looks around nor refers back: the engine takes time linear to the text."""


@lru_cache(maxsize=512)
def read(source: str) -> Pattern:
    """Read a regular expression. Raises `NotReadable`."""
    found = _Reader(source, looks=False).read()
    if found.linear:
        return found
    found = _Reader(source, looks=True).read()
    # With this before it, the engine's own translation (not quite ECMA-262's) leaves it alone.
    return replace(found, text=f"(?=){found.text}", compiling=2 * found.compiling + 1000)


@dataclass
class _Frame:
    """What is inside of one pair of parentheses, or of none."""

    outer: "_Frame | None" = None
    behind: bool = False
    branches: int = 1
    least: int = 1
    most: int | None = 1

    def can_be_left_out_later(self) -> bool:
        """Whether it matches in one round of a repetition and perhaps not in the next.

        There, ECMA-262 forgets what was matched, and the engine does not.
        """
        frame: _Frame | None = self
        optional = False
        while frame:
            if optional and frame.most != 1:
                return True
            optional = optional or frame.least == 0
            frame = frame.outer
            optional = optional or (frame is not None and frame.branches > 1)
        return False


class _Reader:
    def __init__(self, source: str, *, looks: bool) -> None:
        if len(source) > MAX_LENGTH:
            raise NotReadable
        self._source = source
        self._looks = looks
        self._at = 0
        self._depth = 0
        self._closed: dict[int, _Frame] = {}
        self._opened = 0
        self._referred: list[_Frame] = []
        # One can refer to a group before it is read. What has no end is read on to the end once.
        bare = re.sub(r"\\.|\[(?:\\.|[^\]\\])*+\]?", "..", source, flags=re.DOTALL)
        names = re.findall(r"\((?!\?)|\(\?<(?![=!])([^(>]*)>", bare)
        self._groups = len(names)
        self._names = {name: n for n, name in enumerate(names, 1) if name}
        if len(self._names) < sum(map(bool, names)):
            raise NotReadable

    def read(self) -> Pattern:
        found = self._alternatives(_Frame(), top=True)
        if self._at < len(self._source):
            raise NotReadable
        if any(frame.can_be_left_out_later() for frame in self._referred):
            raise NotReadable
        return found

    def _takes(self, *texts: str) -> str | None:
        for text in texts:
            if self._source.startswith(text, self._at):
                self._at += len(text)
                return text
        return None

    def _finds(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._source, self._at)
        if found:
            self._at = found.end()
        return found

    def _alternatives(self, frame: _Frame, *, top: bool = False) -> Pattern:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotReadable
        parts = [self._sequence(frame, top)]
        while self._takes("|"):
            frame.branches += 1
            parts.append(self._sequence(frame, top))
        self._depth -= 1
        if len(parts) == 1:
            return parts[0]
        return replace(_joined(parts, "|"), ways=_sum([Pattern("", ways=1), *parts]))

    def _sequence(self, frame: _Frame, top: bool) -> Pattern:
        parts = []
        while self._at < len(self._source) and self._source[self._at] not in "|)":
            parts.append(self._term(frame))
        found = _joined(parts)
        if not top or found.linear:
            return found
        if parts[0].text != "^":
            return replace(found, ways=_sum([found, Pattern("", ways=1)]))  # It starts anywhere.
        # What only looks ahead at its start, as rules for passwords do, looks once.
        rest = list(dropwhile(_looks_once, parts[1:]))
        return replace(found, ways=0) if all(part.linear for part in rest) else found

    def _term(self, frame: _Frame) -> Pattern:
        if anchor := self._takes("^", "$", r"\b", r"\B"):
            return self._anchor(anchor)
        if look := self._takes("(?=", "(?!", "(?<=", "(?<!"):
            inner = self._group(_Frame(frame, behind="<" in look or frame.behind))
            ways = 0 if inner.linear else inner.ways
            return Pattern(f"{look}{inner.text})", inner.size + 1, inner.compiling, ways, False)
        within = _Frame(frame, behind=frame.behind)
        if self._takes("(?:"):
            atom = self._group(within)
            atom = replace(atom, text=f"(?:{atom.text})", size=atom.size + 1)
        elif self._takes("("):
            if self._takes("?") and not ((name := self._finds(_NAME)) and _is_name(name[1])):
                raise NotReadable
            self._opened += 1
            number = self._opened
            atom = self._group(within)
            atom = replace(atom, text=f"({atom.text})", size=atom.size + 1)
            self._closed[number] = within
        elif self._takes("["):
            atom = self._class()
        elif self._takes("."):
            atom = _of_class("^\\n\\r\u2028\u2029")
        elif self._takes("\\"):
            atom = self._escape(frame)
        else:
            character = self._source[self._at]
            if character in "*+?{}]":
                raise NotReadable
            self._at += 1
            atom = _literal(ord(character))
        return self._quantified(atom, within)

    def _group(self, frame: _Frame) -> Pattern:
        inner = self._alternatives(frame)
        if not self._takes(")"):
            raise NotReadable
        return inner

    def _anchor(self, anchor: str) -> Pattern:
        if anchor in "^$":
            return Pattern(anchor, 1, 1)
        if not self._looks:
            return Pattern(rf"(?-u:{anchor})", 1, 1)
        after, before = ("!", "=") if anchor == r"\b" else ("=", "!")
        text = f"(?:(?<={_WORD})(?{after}{_WORD})|(?<!{_WORD})(?{before}{_WORD}))"
        return Pattern(text, 4, 4, 0, False)

    def _quantified(self, atom: Pattern, frame: _Frame) -> Pattern:
        if sign := self._takes("*", "+", "?"):
            least, most = int(sign == "+"), 1 if sign == "?" else None
        elif counted := self._finds(_COUNTED):
            sign = counted[0]
            least = int(counted[1])
            most = (int(counted[3]) if counted[3] else None) if counted[2] else least
        else:
            return atom
        if least > MAX_SIZE or not (most is None or least <= most <= MAX_SIZE):
            raise NotReadable
        self._takes("?")  # Lazy or not, the same texts match.
        frame.least, frame.most = least, most
        times = max(1, least + 1 if most is None else most)
        ways = atom.ways
        if (least, most) not in ((0, 0), (1, 1)) and least != most:
            ways = 1 if atom.ways == 0 else None
        elif atom.ways and times > 1:
            ways = atom.ways * times
        whole = replace(
            atom,
            text=f"{atom.text}{sign}",
            size=atom.size * times + 1,
            compiling=atom.compiling * times + 1,
            ways=ways,
        )
        return _bounded(whole)

    def _escape(self, frame: _Frame) -> Pattern:
        if found := self._finds(_REFERENCE):
            number = int(found[1]) if found[1] else self._names.get(found[2], 0)
            if not 0 < number <= self._groups or frame.behind:
                raise NotReadable
            group = self._closed.get(number)
            if group is None:
                return Pattern("(?:)", 1, 1, 0, False)  # It refers to what is not matched yet.
            if group.behind:
                raise NotReadable
            self._referred.append(group)
            return Pattern(rf"(?({number})\{number}|)", 2, 2, 0, False)
        code = self._escaped(within_class=False)
        return _literal(code) if isinstance(code, int) else _of_class(code)

    def _escaped(self, *, within_class: bool) -> int | str:
        """Return the character that follows a backslash, or what to write between brackets."""
        if found := self._finds(_PROPERTY):
            kind, value = found.groups()
            if kind in ("General_Category", "gc"):
                known = _CATEGORIES.fullmatch(value)
            elif kind:
                known = _SCRIPT.fullmatch(value)
            else:
                known = _CATEGORIES.fullmatch(value) or _PROPERTIES.fullmatch(value)
            if not known:
                raise NotReadable
            return f"\\{found[0]}"
        if found := self._finds(_HEX):
            code = int(found[1] or found[2] or found[3], 16)
            if code > 0x10FFFF:
                raise NotReadable
            if found[2] and 0xD800 <= code < 0xDC00 and (low := self._finds(_LOW)):
                code = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
            return code
        if found := self._finds(_CONTROL):
            return ord(found[1]) % 32 if found[1] else 0
        if not (character := self._source[self._at : self._at + 1]):
            raise NotReadable
        self._at += 1
        if character.lower() in _CLASSES:
            return _class_of(_CLASSES[character.lower()], negated=character.isupper())
        if character in _CONTROLS:
            return _CONTROLS[character]
        if within_class and character == "b":
            return 8
        # With the flag, an escape such as `\@` is an error; without it, it means what it does here.
        if character in _PUNCTUATION:
            return ord(character)
        raise NotReadable

    def _class(self) -> Pattern:
        negated = self._takes("^") or ""
        inside = ""
        while not self._takes("]"):
            first = self._member()
            if self._source[self._at : self._at + 1] == "-" and (
                self._source[self._at + 1 : self._at + 2] != "]"
            ):
                self._at += 1
                last = self._member()
                if isinstance(first, str) or isinstance(last, str):
                    # An error with the flag; without it, a hyphen between two classes.
                    inside += f"{_member(first)}\\-{_member(last)}"
                elif first <= last:
                    inside += _range(first, last)
                else:
                    raise NotReadable
            else:
                inside += _member(first)
        # The engine would lose the two where one range ends and the other begins.
        inside = inside.replace("-\ud7ff\ue000-", "-")
        if not inside:
            negated, inside = ("", _ANY) if negated else ("^", _ANY)
        return _of_class(negated + inside)

    def _member(self) -> int | str:
        if self._takes("\\"):
            return self._escaped(within_class=True)
        if self._at >= len(self._source):
            raise NotReadable
        self._at += 1
        return ord(self._source[self._at - 1])


def _is_name(name: str) -> bool:
    return re.sub("[$\u200c\u200d]", "_", name).isidentifier() and name[0] not in "\u200c\u200d"


def _looks_once(part: Pattern) -> bool:
    return part.text.startswith(("(?=", "(?!")) and part.ways == 0


def _literal(code: int) -> Pattern:
    if 0xD800 <= code <= 0xDFFF:
        return _of_class(f"^{_ANY}")  # Half of a pair: in no text.
    character = chr(code)
    text = f"\\{character}" if character in _SYNTAX - {"/"} else character
    return _bounded(Pattern(text, len(character.encode()), len(character.encode())))


def _member(member: int | str) -> str:
    return member if isinstance(member, str) else _range(member, member)


def _class_of(ranges: str, *, negated: bool) -> str:
    """Return ranges, or what is between them, as they are written between brackets.

    Brackets within brackets would be shorter; the engine does not take them for a class.
    """
    bounds = list(zip(map(ord, ranges[::2]), map(ord, ranges[1::2]), strict=True))
    if negated:
        ends = [-1, *(last for _, last in bounds)]
        starts = [*(first for first, _ in bounds), 0x110000]
        bounds = [(end + 1, start - 1) for end, start in zip(ends, starts, strict=True)]
    return "".join(_range(first, last) for first, last in bounds)


def _range(first: int, last: int) -> str:
    """Return a range as it is written between brackets, less the halves of pairs."""
    first = 0xE000 if 0xD800 <= first <= 0xDFFF else first
    last = 0xD7FF if 0xD800 <= last <= 0xDFFF else last
    if first > last:
        return ""
    return _inside(first) if first == last else f"{_inside(first)}-{_inside(last)}"


def _inside(code: int) -> str:
    return f"\\{chr(code)}" if chr(code) in "[]\\^-&~" else chr(code)


def _of_class(inside: str) -> Pattern:
    """Return a class of characters; classes beyond ASCII are many states of an automaton."""
    if re.search(r"\\[pP]\{", inside):
        compiling = 2000 * len(re.findall(r"\\[pP]\{", inside))
    else:
        compiling = 2 if inside.isascii() and not re.search(r"\^|\\x", inside) else 60
    return _bounded(Pattern(f"[{inside}]", 1 if compiling == 2 else 3, compiling + len(inside)))


def _joined(parts: list[Pattern], between: str = "") -> Pattern:
    return _bounded(
        Pattern(
            between.join(part.text for part in parts),
            sum(part.size + 1 for part in parts) if between else sum(part.size for part in parts),
            sum(part.compiling for part in parts),
            _sum(parts),
            all(part.linear for part in parts),
        )
    )


def _sum(parts: list[Pattern]) -> int | None:
    ways = [part.ways for part in parts]
    return None if None in ways else sum(way for way in ways if way)


def _bounded(part: Pattern) -> Pattern:
    if part.size > MAX_SIZE or part.compiling > MAX_COMPILING:
        raise NotReadable
    return part
