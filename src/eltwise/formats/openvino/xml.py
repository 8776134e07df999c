"""XML: untrusted input parsed safely, output always the same, and the checks that all elements of IR files share.

Nothing outside the file is ever read, no entity is expanded, and a file with a document type is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lxml import etree

from eltwise.core.errors import AttributeValueError, EltwiseError, FileFormatError, NameUnknownError, unknown_name
from eltwise.core.shapes import LARGEST_SIZE

LARGEST_XML = 2**28
"""The largest XML that is read, in bytes; files of networks with many thousand layers have some millions."""

_MOST_ATTRIBUTES = 64
_PROLOG_WITH_DOCTYPE = re.compile(rb"(?:\s|\xef\xbb\xbf|\xff\xfe|\xfe\xff|<\?.*?\?>|<!--.*?-->)*+<!DOCTYPE", re.DOTALL)


def parse_tree(data: bytes) -> etree._Element:
    """Parse XML to its root element, without comments and processing instructions.

    Raises:
        FileFormatError: where it is not well-formed, too large, or has a document type.
    """
    if len(data) > LARGEST_XML:
        raise FileFormatError("the XML is too large", got=f"{len(data)} bytes", allowed=f"{LARGEST_XML}")
    # In UTF-16 and UTF-32 each of the letters that matter here comes with zero bytes.
    if _PROLOG_WITH_DOCTYPE.match(data.replace(b"\0", b"") if b"\0" in data[:8] else data):
        raise _doctype_refused()
    try:
        root = etree.fromstring(data, _careful_parser())
    except etree.XMLSyntaxError as error:
        reason = " ".join((error.msg or "the parser gives no reason").split())
        raise FileFormatError(f"not well-formed XML ({reason[:200]})") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise _doctype_refused()
    return root


def _careful_parser() -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        no_network=True,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )


def _doctype_refused() -> FileFormatError:
    return FileFormatError(
        "the XML has a DOCTYPE, which can define entities and name other files",
        allowed="IR files without DOCTYPE",
    )


def format_tree(root: etree._Element) -> bytes:
    """Write XML in UTF-8, a line an element, indented by tabs."""
    etree.indent(root, "\t")
    return etree.tostring(root, xml_declaration=True, encoding="utf-8") + b"\n"


def parse_integer(text: str, operand: str, least: int = 0) -> int:
    """Read an integer of 64 bits, written in ASCII digits, with a minus only where ``least`` is negative.

    Raises:
        AttributeValueError: for anything else.
    """
    digits = text[1:] if least < 0 and text.startswith("-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20 and least <= int(text) <= LARGEST_SIZE):
        raise AttributeValueError(
            "not an allowed integer",
            operand=operand,
            got=repr(text[:40]),
            allowed=f"{least} to {LARGEST_SIZE}, in digits",
        )
    return int(text)


def required(element: etree._Element, name: str) -> str:
    """The text of an attribute that must be there.

    Raises:
        FileFormatError: where it is missing.
    """
    text = element.get(name)
    if text is None:
        raise FileFormatError(f"the attribute {name!r} of <{shown(element.tag)}> is missing")
    return text


def attributes(element: etree._Element) -> dict[str, str]:
    """All attributes in the file's order.

    Raises:
        FileFormatError: for more than any element of IR has; listing hundreds of thousands takes very long.
    """
    if len(element.attrib) > _MOST_ATTRIBUTES:
        raise FileFormatError(
            f"<{shown(element.tag)}> in {line(element)} has too many attributes",
            got=str(len(element.attrib)),
            allowed=f"up to {_MOST_ATTRIBUTES}",
        )
    return {str(name): str(text) for name, text in element.attrib.items()}


def strange_attributes(element: etree._Element, known: Sequence[str], operand: str = "") -> list[NameUnknownError]:
    """The errors for unknown attributes."""
    names = [name for name in attributes(element) if name not in known]
    return [unknown_name("attribute", shown(name), known, operand=operand) for name in names]


def check_attributes(element: etree._Element, known: Sequence[str]) -> None:
    """Refuse unknown attributes.

    Raises:
        NameUnknownError: with the nearest name.
    """
    for problem in strange_attributes(element, known, f"<{shown(element.tag)}> in {line(element)}"):
        raise problem


def children(
    element: etree._Element,
    known: Sequence[str],
    problems: list[EltwiseError],
    operand: str = "",
    repeated: Sequence[str] = (),
) -> Iterator[etree._Element]:
    """The children with known tags; one of another tag, and a second one of a tag not ``repeated``, is a problem."""
    seen: set[str] = set()
    for child in element:
        where = operand or f"<{shown(element.tag)}>, {line(child)}"
        if child.tag not in known:
            problems.append(unknown_name("element", shown(child.tag), known, operand=where))
        elif child.tag in seen and child.tag not in repeated:
            problems.append(FileFormatError(f"there are two <{child.tag}>", operand=where))
        else:
            seen.add(child.tag)
            yield child


def line(element: etree._Element) -> str:
    """The line of an element, for error sentences."""
    return f"line {element.sourceline}"


def shown(text: object) -> str:
    """A text from a file, short enough for an error sentence."""
    return str(text)[:80]
