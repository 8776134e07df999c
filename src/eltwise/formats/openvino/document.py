"""An IR file as records, read from its XML.

The XML is parsed safely: nothing outside the file is read, no entity is expanded, and a document type is refused.
Source: OpenVINO's IR format, versions 10 and 11; how tensor names are escaped was measured with OpenVINO 2026.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lxml import etree

from eltwise.core.errors import (
    AttributeValueError,
    EltwiseError,
    FileFormatError,
    UnsupportedError,
    counted,
    raise_all,
    shown,
    unknown_name,
)
from eltwise.core.escaping import shortened
from eltwise.core.shapes import LARGEST_SIZE

VERSIONS = (10, 11)
"""The versions of the format that are read and written."""

LARGEST_XML = 2**28
"""The largest XML that is read, in bytes; files of networks with many thousand layers have some millions."""

DEEPEST_METADATA = 32

MOST_PROBLEMS = 50
_MOST_ATTRIBUTES = 64
_LONGEST_NAME = 4096
_PROLOG_WITH_DOCTYPE = re.compile(rb"(?:\s|\xef\xbb\xbf|\xff\xfe|\xfe\xff|<\?.*?\?>|<!--.*?-->)*+<!DOCTYPE", re.DOTALL)
_UNESCAPED_COMMA = re.compile(r"(?<!\\),")


@dataclass(frozen=True)
class Layer:
    """A layer.

    Attributes:
        id: its number in the file.
        name: its name, the name of the value that it makes.
        type: the operator's name.
        version: the operation set, for example ``opset1``.
        data: the attributes of the operator as text.
        inputs: the numbers of the input ports in the file's order, which is the order of the operands.
        outputs: the numbers of the output ports, each with its tensor names.
        output_names: the tensor names that a Result has of its own.
        inner: the graphs in it, and how their values are those of its ports.
    """

    id: int
    name: str
    type: str
    version: str
    data: Mapping[str, str]
    inputs: tuple[int, ...]
    outputs: tuple[tuple[int, tuple[str, ...]], ...]
    output_names: tuple[str, ...]
    inner: tuple[etree._Element, ...] = ()

    @property
    def kind(self) -> str:
        """The operator's name without regard to case."""
        return self.type.casefold()

    def value(self, position: int = 0) -> str:
        """The name of the value at an output port."""
        return value_name(self.name, position)


@dataclass(frozen=True)
class Net:
    """A whole file.

    Attributes:
        name: the graph's name.
        version: the version of the format.
        layers: the layers.
        edges: the connections, each as the numbers of the layer and the output port, and of the layer and the input
            port that they lead to.
        metadata: the entries of its ``rt_info`` as (path/with/slashes, value).
        not_held: what the file says beside all that, a phrase each.
    """

    name: str
    version: int
    layers: tuple[Layer, ...]
    edges: tuple[tuple[int, int, int, int], ...]
    metadata: tuple[tuple[str, str], ...]
    not_held: tuple[str, ...]


@dataclass(frozen=True)
class _Form:
    """What an element may have: attributes, and children once or any number of times."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    often: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


EDGE = ("from-layer", "from-port", "to-layer", "to-port")
"""The attributes of an edge."""

_INNER = ("port_map", "back_edges", "body", "then_port_map", "then_body", "else_port_map", "else_body")
"""What the layers of If, Loop and TensorIterator have beside: its content is not looked at here."""

_FORMS = {
    "net": _Form(
        required=("version",),
        optional=("name",),
        once=("layers", "edges", "rt_info", "meta_data", "quantization_parameters"),
    ),
    "layers": _Form(often=("layer",)),
    "edges": _Form(often=("edge",)),
    "layer": _Form(
        required=("id", "name", "type", "version"),
        optional=("output_names",),
        once=("data", "input", "output", "rt_info", *_INNER),
        numbers=("id",),
    ),
    "input": _Form(often=("port",)),
    "output": _Form(often=("port",)),
    "port": _Form(
        required=("id",), optional=("precision", "names"), once=("rt_info",), often=("dim",), numbers=("id",)
    ),
    "edge": _Form(required=EDGE, numbers=EDGE),
}
"""What an IR says and this reader reads; the content of other elements is not looked at."""


def read_net(data: bytes) -> Net:
    """Read the XML of an IR file."""
    root = parse_xml(data)
    if root.tag != "net":
        raise FileFormatError("this XML is not OpenVINO IR", got=f"<{shortened(root.tag)}>", allowed="<net>")
    version = root.get("version")
    if version is None:
        raise FileFormatError("<net> has no version", allowed='version="10" or version="11"')
    if version not in map(str, VERSIONS):
        allowed = ", ".join(map(str, VERSIONS))
        raise UnsupportedError("unsupported version of the IR format", got=shown(version), allowed=allowed)
    raise_all(list(_form_problems(root)), MOST_PROBLEMS)
    sections = {section.tag: section for section in root}
    if "layers" not in sections:
        raise FileFormatError("the IR has no <layers>")
    return Net(
        name=root.get("name", ""),
        version=int(version),
        layers=tuple(map(_read_layer, sections["layers"], layer_names(sections["layers"]))),
        edges=tuple(tuple(int(edge.attrib[name]) for name in EDGE) for edge in sections.get("edges", ())),  # type: ignore[misc]
        metadata=tuple(_read_metadata(sections["rt_info"])) if "rt_info" in sections else (),
        not_held=tuple(_not_held(sections)),
    )


def parse_xml(data: bytes) -> etree._Element:
    """Parse XML to its root element, without comments and processing instructions."""
    if len(data) > LARGEST_XML:
        raise FileFormatError("the XML is too large", got=f"{len(data)} bytes", allowed=f"{LARGEST_XML}")
    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        attribute_defaults=False,
        no_network=True,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )
    root = None
    # In UTF-16 and UTF-32 each of the letters that matter here comes with zero bytes.
    if not _PROLOG_WITH_DOCTYPE.match(data.replace(b"\0", b"") if b"\0" in data[:8] else data):
        try:
            root = etree.fromstring(data, parser)
        except etree.XMLSyntaxError as error:
            reason = " ".join((error.msg or "the parser gives no reason").split())
            raise FileFormatError(f"not well-formed XML ({shortened(reason, 200)})") from None
    if root is None or root.getroottree().docinfo.internalDTD is not None:
        problem = "the XML has a DOCTYPE, which can define entities and name other files"
        raise FileFormatError(problem, allowed="IR files without DOCTYPE")
    return root


def _form_problems(root: etree._Element) -> Iterator[EltwiseError]:
    """Find what is not in the form of an IR; each problem names the layer that it is in, and the line."""
    waiting = [(root, "")]
    while waiting:
        element, layer = waiting.pop()
        layer = element.get("name", layer) if element.tag == "layer" else layer
        operand = f"<{shortened(element.tag)}> in line {element.sourceline}"
        yield from (error.located(node=shortened(layer), operand=operand) for error in _of_element(element))
        form = _FORMS.get(element.tag, _Form())
        waiting += [(child, layer) for child in reversed(element) if child.tag in form.once + form.often]


def _of_element(element: etree._Element) -> Iterator[EltwiseError]:
    if len(element.attrib) > _MOST_ATTRIBUTES:  # Listing hundreds of thousands takes very long.
        allowed = f"up to {_MOST_ATTRIBUTES}"
        yield FileFormatError("the element has too many attributes", got=str(len(element.attrib)), allowed=allowed)
        return
    form = _FORMS.get(element.tag)
    if form is None:
        return
    yield from (
        unknown_name("attribute", shortened(name), form.required + form.optional)
        for name in map(str, element.attrib)
        if name not in form.required + form.optional
    )
    for name in form.required:
        text = element.get(name)
        if text is None:
            yield FileFormatError(f"the attribute {name!r} of <{element.tag}> is missing")
        elif name in form.numbers:
            try:
                parse_integer(text, f"attribute {name} in line {element.sourceline}")
            except AttributeValueError as error:
                yield error
    if element.tag == "layer" and not 0 < len(element.get("name", "x")) <= _LONGEST_NAME:
        allowed = f"1 to {_LONGEST_NAME} characters"
        yield FileFormatError("the layer's name is empty or too long", allowed=allowed)
    seen: set[str] = set()
    for child in element:
        if child.tag not in form.once + form.often:
            yield unknown_name("element", shortened(child.tag), form.once + form.often)
        elif child.tag in seen and child.tag in form.once:
            yield FileFormatError(f"there are two <{child.tag}>")
        seen.add(child.tag)


def layer_names(elements: Iterable[etree._Element]) -> list[str]:
    """The names of layers, with its id for one that has that of an earlier layer; Results may have those of others."""
    names = dict[tuple[bool, str], None]()
    for element in elements:
        name, is_result = str(element.attrib["name"]), str(element.attrib["type"]).casefold() == "result"
        while (is_result, name) in names:
            name = f"{name} (id {element.get('id')})"
        names[is_result, name] = None
    return [name for _is_result, name in names]


def _read_layer(element: etree._Element, name: str) -> Layer:
    parts = {part.tag: part for part in element}
    return Layer(
        id=int(element.attrib["id"]),
        name=name,
        type=str(element.attrib["type"]),
        version=str(element.attrib["version"]),
        data={str(name): str(text) for name, text in parts["data"].attrib.items()} if "data" in parts else {},
        inputs=tuple(int(port.attrib["id"]) for port in parts.get("input", ())),
        outputs=tuple((int(port.attrib["id"]), split_names(port.get("names", ""))) for port in parts.get("output", ())),
        output_names=split_names(element.get("output_names", "")),
        inner=tuple(parts[tag] for tag in _INNER if tag in parts),
    )


def _read_metadata(element: etree._Element, path: str = "", depth: int = 0) -> list[tuple[str, str]]:
    """The entries that are a path and a value; elements with other attributes, or very deep ones, are left out."""
    entries: list[tuple[str, str]] = []
    for part in element if depth < DEEPEST_METADATA else ():
        if "{" in part.tag or list(part.attrib) not in ([], ["value"]):
            continue
        if "value" in part.attrib:
            entries.append((path + part.tag, str(part.attrib["value"])))
        entries += _read_metadata(part, f"{path}{part.tag}/", depth + 1)
    return entries


def _not_held(sections: Mapping[str, etree._Element]) -> Iterator[str]:
    """Metadata that a changed model loses: of single layers, and sections of older files."""
    layers = sum(1 for layer in sections["layers"] if any(len(info) for info in layer.iter("rt_info")))
    if layers:
        yield f"the rt_info of {counted(layers, 'layer')}"
    yield from (f"the section <{tag}>" for tag in ("meta_data", "quantization_parameters") if tag in sections)


def format_tree(root: etree._Element) -> bytes:
    """Write XML in UTF-8, a line an element, indented by tabs."""
    etree.indent(root, "\t")
    return etree.tostring(root, xml_declaration=True, encoding="utf-8") + b"\n"


def parse_integer(text: str, operand: str, least: int = 0) -> int:
    """Read an integer of 64 bits, written in ASCII digits, with a minus only where ``least`` is negative."""
    digits = text[1:] if least < 0 and text.startswith("-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20 and least <= int(text) <= LARGEST_SIZE):
        allowed = f"{least} to {LARGEST_SIZE}, in digits"
        raise AttributeValueError("not an allowed integer", operand=operand, got=shown(text, 60), allowed=allowed)
    return int(text)


def split_names(text: str) -> tuple[str, ...]:
    r"""Split tensor names at their commas; a comma in a name is written ``\,``, and every name counts once.

    >>> split_names(r"x,y\,z,,x")
    ('x', 'y,z')
    """
    return once(name.replace("\\,", ",") for name in _UNESCAPED_COMMA.split(text) if name)


def join_names(names: Sequence[str]) -> str:
    r"""Join tensor names with commas, so that ``split_names`` gives them back."""
    text = ",".join(name.replace(",", "\\,") for name in names)
    if split_names(text) != tuple(names):
        raise FileFormatError("these tensor names cannot be written in IR", got=shown(list(names)))
    return text


def value_name(layer: str, position: int) -> str:
    """The name of the value at an output port: the layer's, with the position where it is not the first."""
    return f"{layer}:{position}" if position else layer


def once(names: Iterable[str]) -> tuple[str, ...]:
    """Names in their order, each once."""
    return tuple(dict.fromkeys(names))
