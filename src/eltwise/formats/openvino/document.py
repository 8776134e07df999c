"""An IR file as records, read from its XML.

Source: OpenVINO's IR format, versions 10 and 11; which names a port's precision may have, and how tensor names are
escaped, was measured with OpenVINO 2026.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lxml import etree

from eltwise.core.dtypes import TYPES
from eltwise.core.errors import (
    AttributeValueError,
    EltwiseError,
    FileFormatError,
    UnsupportedError,
    counted,
    unknown_name,
)
from eltwise.formats.openvino import xml
from eltwise.formats.openvino.ports import split_names

VERSIONS = (10, 11)
"""The versions of the format that are read and written."""

_SECTIONS = ("layers", "edges", "rt_info", "meta_data", "quantization_parameters")
_LAYER_ATTRIBUTES = ("id", "name", "type", "version")
_LAYER_PARTS = ("data", "input", "output", "rt_info")
_EDGE_ATTRIBUTES = ("from-layer", "from-port", "to-layer", "to-port")
_PORT_ATTRIBUTES = ("id", "precision", "names")
_PORT_PARTS = ("dim", "rt_info")
_PRECISIONS = tuple(each.ir_precision for each in TYPES if each.ir)
_OTHER_PRECISIONS = (*(each.ir for each in TYPES if each.ir), "U1", "bin", "UNSPECIFIED", "undefined", "dynamic")
DEEPEST_METADATA = 32
_LONGEST_NAME = 4096


@dataclass(frozen=True)
class PortRecord:
    """An input or output port of a layer.

    Attributes:
        id: its number in the layer.
        precision: the element type as ports write it, empty where it is absent; advisory.
        dimensions: the sizes, -1 for one that is not fixed; advisory.
        names: the tensor names of an output.
    """

    id: int
    precision: str = ""
    dimensions: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layer:
    """A layer.

    Attributes:
        id: its number in the file.
        name: its name, the name of the value that it makes.
        type: the operator's name.
        version: the operation set, for example ``opset1``.
        data: the attributes of the operator as text.
        inputs: the input ports in the file's order, which is the order of the operands.
        outputs: the output ports in the file's order.
        output_names: the tensor names that a Result has of its own.
        problems: what is wrong with the element apart from its attributes of the operator.
    """

    id: int
    name: str
    type: str
    version: str
    data: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[PortRecord, ...] = ()
    outputs: tuple[PortRecord, ...] = ()
    output_names: tuple[str, ...] = ()
    problems: tuple[EltwiseError, ...] = ()

    @property
    def folded_type(self) -> str:
        """The operator's name without regard to case."""
        return self.type.casefold()


@dataclass(frozen=True)
class Edge:
    """A connection from an output port to an input port, each given by the layer's number and the port's."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int

    def __str__(self) -> str:
        return f"edge from layer {self.from_layer} port {self.from_port} to layer {self.to_layer} port {self.to_port}"


@dataclass(frozen=True)
class Net:
    """A whole file.

    ``metadata`` are the entries of its ``rt_info`` as (path/with/slashes, value), ``not_held`` is what the file says
    beside all that, a phrase each.
    """

    name: str
    version: int
    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...]
    metadata: tuple[tuple[str, str], ...] = ()
    not_held: tuple[str, ...] = ()


def read_net(data: bytes) -> Net:
    """Read the XML of an IR file.

    Raises:
        FileFormatError: where it is not XML, not IR, or lacks what every IR has.
        UnsupportedError: for other versions of the format than 10 and 11.
        NameUnknownError: for elements and attributes that no IR has.
        AttributeValueError: for numbers that are malformed.
    """
    root = xml.parse_tree(data)
    if root.tag != "net":
        raise FileFormatError("this XML is not OpenVINO IR", got=f"<{xml.shown(root.tag)}>", allowed="<net>")
    xml.check_attributes(root, ("name", "version"))
    version = _read_version(root)
    sections = {section.tag: section for section in _only(root, _SECTIONS)}
    if "layers" not in sections:
        raise FileFormatError("the IR has no <layers>")
    return Net(
        name=root.get("name", ""),
        version=version,
        layers=tuple(map(_read_layer, _only(sections["layers"], ["layer"], repeated=["layer"]))),
        edges=tuple(map(_read_edge, _only(sections["edges"], ["edge"], repeated=["edge"])))
        if "edges" in sections
        else (),
        metadata=tuple(_read_metadata(sections["rt_info"])) if "rt_info" in sections else (),
        not_held=tuple(_not_held(sections)),
    )


def _read_version(root: etree._Element) -> int:
    text = root.get("version")
    if text is None:
        raise FileFormatError("<net> has no version", allowed='version="10" or version="11"')
    if text not in map(str, VERSIONS):
        raise UnsupportedError(
            "unsupported version of the IR format",
            got=repr(xml.shown(text)),
            allowed=", ".join(map(str, VERSIONS)),
        )
    return int(text)


def _not_held(sections: Mapping[str, etree._Element]) -> Iterator[str]:
    """Metadata that is not preserved: of single layers, and sections of older files."""
    layers = sum(1 for layer in sections["layers"] if any(len(found) for found in layer.iter("rt_info")))
    if layers:
        yield f"the rt_info of {counted(layers, 'layer')}"
    yield from (f"the section <{tag}>" for tag in ("meta_data", "quantization_parameters") if tag in sections)


def _only(section: etree._Element, tags: Sequence[str], repeated: Sequence[str] = ()) -> list[etree._Element]:
    """The children of an element, which have these tags.

    Raises:
        EltwiseError: for the first one of another tag.
    """
    problems: list[EltwiseError] = []
    found = list(xml.children(section, tags, problems, repeated=repeated))
    for problem in problems:
        raise problem
    return found


def _read_layer(element: etree._Element) -> Layer:
    name, number = element.get("name", ""), element.get("id", "")
    place = " in ".join(filter(None, (f"layer {xml.shown(number)}" if number else "", xml.line(element))))
    problems: list[EltwiseError] = []
    try:
        texts = {attribute: xml.required(element, attribute) for attribute in _LAYER_ATTRIBUTES}
        if not 0 < len(name) <= _LONGEST_NAME:
            raise FileFormatError("the layer's name is empty or too long", allowed=f"1 to {_LONGEST_NAME} characters")
        known = (*_LAYER_ATTRIBUTES, "output_names") if texts["type"].casefold() == "result" else _LAYER_ATTRIBUTES
        problems += xml.strange_attributes(element, known)
        parts = {part.tag: part for part in xml.children(element, _LAYER_PARTS, problems)}
        return Layer(
            id=xml.parse_integer(texts["id"], f"attribute id in {xml.line(element)}"),
            name=name,
            type=texts["type"],
            version=texts["version"],
            data=xml.attributes(parts["data"]) if "data" in parts else {},
            inputs=tuple(_read_port(port, problems) for port in parts.get("input", ())),
            outputs=tuple(_read_port(port, problems) for port in parts.get("output", ())),
            output_names=split_names(element.get("output_names", "")),
            problems=tuple(problems),
        )
    except EltwiseError as error:
        raise error.located(node=xml.shown(name), operand=place) from None


def _read_port(element: etree._Element, problems: list[EltwiseError]) -> PortRecord:
    if element.tag != "port":
        raise unknown_name("element", xml.shown(element.tag), ["port"], operand=xml.line(element))
    number = xml.parse_integer(xml.required(element, "id"), f"attribute id of the port in {xml.line(element)}")
    place = f"port {number}"
    problems += xml.strange_attributes(element, _PORT_ATTRIBUTES, place)
    precision = element.get("precision")
    if precision is not None and precision not in _PRECISIONS + _OTHER_PRECISIONS:
        problems.append(unknown_name("precision", xml.shown(precision), _PRECISIONS, operand=place))
    dimensions: list[int] = []
    for part in xml.children(element, _PORT_PARTS, problems, place, repeated=["dim"]):
        if part.tag == "dim":
            try:
                dimensions.append(xml.parse_integer((part.text or "").strip(), f"a <dim> of {place}", least=-1))
            except AttributeValueError as error:
                problems.append(error)
    return PortRecord(number, precision or "", tuple(dimensions), split_names(element.get("names", "")))


def _read_edge(element: etree._Element) -> Edge:
    xml.check_attributes(element, _EDGE_ATTRIBUTES)
    place = f"<edge> in {xml.line(element)}"
    try:
        texts = [xml.required(element, name) for name in _EDGE_ATTRIBUTES]
    except FileFormatError as error:
        raise error.located(operand=place) from None
    return Edge(
        *(xml.parse_integer(text, f"{name} of the {place}") for name, text in zip(_EDGE_ATTRIBUTES, texts, strict=True))
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
