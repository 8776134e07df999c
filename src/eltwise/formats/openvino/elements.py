"""The elements of IR files and the records that they stand for, read and written in pairs.

Source: OpenVINO's IR format, versions 10 and 11; which names a port's precision may have, and how tensor names are
escaped, was measured with OpenVINO 2026.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

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
from eltwise.formats.openvino.document import VERSIONS, Edge, Layer, Net, PortRecord

_SECTIONS = ("layers", "edges", "rt_info", "meta_data", "quantization_parameters")
_LAYER_ATTRIBUTES = ("id", "name", "type", "version")
_LAYER_PARTS = ("data", "input", "output", "rt_info")
_EDGE_ATTRIBUTES = ("from-layer", "from-port", "to-layer", "to-port")
_PORT_ATTRIBUTES = ("id", "precision", "names")
_PORT_PARTS = ("dim", "rt_info")
_PRECISIONS = tuple(each.ir_precision for each in TYPES if each.ir)
_OTHER_PRECISIONS = (*(each.ir for each in TYPES if each.ir), "U1", "bin", "UNSPECIFIED", "undefined", "dynamic")
_DEEPEST_METADATA = 32
_LONGEST_NAME = 4096
_UNESCAPED_COMMA = re.compile(r"(?<!\\),")


def read_net(data: bytes) -> Net:
    """Read the XML of an IR file.

    Raises:
        FileFormatError: where it is no XML, no IR, or lacks what every IR has.
        UnsupportedError: for other versions of the format than 10 and 11.
        NameUnknownError: for elements and attributes that no IR has.
        AttributeValueError: for numbers that are none.
    """
    root = xml.parse_tree(data)
    if root.tag != "net":
        raise FileFormatError("this XML is not OpenVINO IR", got=f"<{xml.shown(root.tag)}>", allowed="<net>")
    xml.check_attributes(root, ("name", "version"))
    version = _read_version(root)
    sections = _sections(root)
    if "layers" not in sections:
        raise FileFormatError("the IR has no <layers>")
    return Net(
        name=root.get("name", ""),
        version=version,
        layers=tuple(map(_read_layer, _items(sections["layers"], "layer"))),
        edges=tuple(map(_read_edge, _items(sections["edges"], "edge"))) if "edges" in sections else (),
        metadata=tuple(_read_metadata(sections["rt_info"])) if "rt_info" in sections else (),
        not_held=tuple(_not_held(sections)),
    )


def write_net(net: Net) -> bytes:
    """Write the XML of an IR file: the same bytes for the same content.

    Raises:
        FileFormatError: for names that XML cannot hold.
    """
    try:
        root = etree.Element("net", {"name": net.name, "version": str(net.version)})
        layers = etree.SubElement(root, "layers")
        for layer in net.layers:
            _write_layer(layers, layer)
        edges = etree.SubElement(root, "edges")
        for edge in net.edges:
            _write_edge(edges, edge)
        if net.metadata:
            _write_metadata(etree.SubElement(root, "rt_info"), net.metadata)
    except ValueError as error:
        raise FileFormatError(f"a name or text cannot be written in XML ({str(error)[:200]})") from None
    return xml.format_tree(root)


def _read_version(root: etree._Element) -> int:
    text = root.get("version")
    if text is None:
        raise FileFormatError("<net> does not say its version", allowed='version="10" or version="11"')
    if text not in map(str, VERSIONS):
        raise UnsupportedError(
            "this version of the IR format is not read here",
            got=repr(xml.shown(text)),
            allowed=", ".join(map(str, VERSIONS)),
        )
    return int(text)


def _sections(root: etree._Element) -> dict[str, etree._Element]:
    sections: dict[str, etree._Element] = {}
    for section in root:
        if section.tag not in _SECTIONS:
            raise unknown_name("element", xml.shown(section.tag), _SECTIONS, operand=f"<net>, {xml.line(section)}")
        if section.tag in sections:
            raise FileFormatError(f"there are two <{section.tag}> in <net>", operand=xml.line(section))
        sections[section.tag] = section
    return sections


def _not_held(sections: Mapping[str, etree._Element]) -> Iterator[str]:
    """What is only said of single layers, for programs that read it there, and sections of older files."""
    layers = sum(1 for layer in sections["layers"] if any(len(found) for found in layer.iter("rt_info")))
    if layers:
        yield f"the rt_info of {counted(layers, 'layer')}"
    yield from (f"the section <{tag}>" for tag in ("meta_data", "quantization_parameters") if tag in sections)


def _items(section: etree._Element, tag: str) -> list[etree._Element]:
    for item in section:
        if item.tag != tag:
            raise unknown_name("element", xml.shown(item.tag), [tag], operand=f"<{section.tag}>, {xml.line(item)}")
    return list(section)


def _read_layer(element: etree._Element) -> Layer:
    name, number = element.get("name", ""), element.get("id", "")
    place = " in ".join(filter(None, (f"layer {xml.shown(number)}" if number else "", xml.line(element))))
    problems: list[EltwiseError] = []
    try:
        texts = {attribute: xml.required(element, attribute) for attribute in _LAYER_ATTRIBUTES}
        if not 0 < len(name) <= _LONGEST_NAME:
            raise FileFormatError("the layer's name is empty or too long", allowed=f"1 to {_LONGEST_NAME} characters")
        parts = _layer_parts(element, problems)
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


def _layer_parts(element: etree._Element, problems: list[EltwiseError]) -> dict[str, etree._Element]:
    is_result = element.get("type", "").casefold() == "result"
    problems += xml.strange_attributes(element, (*_LAYER_ATTRIBUTES, *(("output_names",) if is_result else ())))
    parts: dict[str, etree._Element] = {}
    for part in element:
        if part.tag not in _LAYER_PARTS:
            problems.append(unknown_name("element", xml.shown(part.tag), _LAYER_PARTS, operand=xml.line(part)))
        elif part.tag in parts:
            problems.append(FileFormatError(f"there are two <{part.tag}> in the layer", operand=xml.line(part)))
        parts.setdefault(part.tag, part)
    return parts


def _write_layer(layers: etree._Element, layer: Layer) -> None:
    texts = dict(zip(_LAYER_ATTRIBUTES, (str(layer.id), layer.name, layer.type, layer.version), strict=True))
    if layer.output_names:
        texts["output_names"] = join_names(layer.output_names)
    element = etree.SubElement(layers, "layer", texts)
    if layer.data:
        etree.SubElement(element, "data", dict(layer.data))
    for tag, ports in (("input", layer.inputs), ("output", layer.outputs)):
        section = etree.SubElement(element, tag) if ports else None
        for port in ports:
            assert section is not None
            _write_port(section, port)


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
    for part in element:
        if part.tag not in _PORT_PARTS:
            problems.append(unknown_name("element", xml.shown(part.tag), _PORT_PARTS, operand=place))
        elif part.tag == "dim":
            try:
                dimensions.append(xml.parse_integer((part.text or "").strip(), f"a <dim> of {place}", least=-1))
            except AttributeValueError as error:
                problems.append(error)
    return PortRecord(number, precision or "", tuple(dimensions), split_names(element.get("names", "")))


def _write_port(section: etree._Element, port: PortRecord) -> None:
    element = etree.SubElement(section, "port", {"id": str(port.id), "precision": port.precision})
    if port.names:
        element.set("names", join_names(port.names))
    for dimension in port.dimensions:
        etree.SubElement(element, "dim").text = str(dimension)


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


def _write_edge(edges: etree._Element, edge: Edge) -> None:
    numbers = (edge.from_layer, edge.from_port, edge.to_layer, edge.to_port)
    etree.SubElement(edges, "edge", dict(zip(_EDGE_ATTRIBUTES, map(str, numbers), strict=True)))


def _read_metadata(element: etree._Element, path: str = "", depth: int = 0) -> list[tuple[str, str]]:
    """The entries that a path and a value say whole; what has other attributes, or lies very deep, is left out."""
    entries: list[tuple[str, str]] = []
    for part in element if depth < _DEEPEST_METADATA else ():
        if "{" in part.tag or list(part.attrib) not in ([], ["value"]):
            continue
        if "value" in part.attrib:
            entries.append((path + part.tag, str(part.attrib["value"])))
        entries += _read_metadata(part, f"{path}{part.tag}/", depth + 1)
    return entries


def _write_metadata(root: etree._Element, metadata: Sequence[tuple[str, str]]) -> None:
    for path, value in metadata:
        *folders, name = path.split("/")
        if len(folders) >= _DEEPEST_METADATA:
            raise ValueError(f"the metadata path {path[:80]!r} is too deep")
        element = root
        for folder in folders:
            last = element[-1] if len(element) else None
            element = last if last is not None and last.tag == folder else etree.SubElement(element, folder)
        etree.SubElement(element, name, {"value": value})


def split_names(text: str) -> tuple[str, ...]:
    r"""Split tensor names at their commas; a comma in a name is written ``\,``, and every name counts once.

    >>> split_names(r"x,y\,z,,x")
    ('x', 'y,z')
    """
    names = (name.replace("\\,", ",") for name in _UNESCAPED_COMMA.split(text))
    return tuple(dict.fromkeys(name for name in names if name))


def join_names(names: Sequence[str]) -> str:
    r"""Join tensor names with commas, so that ``split_names`` gives them back.

    Raises:
        FileFormatError: for names that the notation cannot say, such as one that ends in a backslash.
    """
    text = ",".join(name.replace(",", "\\,") for name in names)
    if split_names(text) != tuple(names):
        raise FileFormatError("these tensor names cannot be written in IR", got=xml.shown(repr(list(names))))
    return text
