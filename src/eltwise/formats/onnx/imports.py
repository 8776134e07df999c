"""The opset imports of an ONNX model and of its functions: which domains they must have, and where they must agree.

Source: the checks of nodes and of model-local functions in onnx's checker. A model may lack the import of
``com.microsoft``, whose operators onnxruntime then runs with one meaning; a function may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from eltwise.core.errors import EltwiseError, GraphError
from eltwise.formats.onnx.header import default_domain
from eltwise.formats.onnx.nodes import called_functions, published_schema
from eltwise.ir.graph import Function, Graph
from eltwise.ir.scopes import all_graphs

_IMPLIED = {"com.microsoft": 1}
Imports = Mapping[str, int]


def import_problems(graph: Graph) -> Iterator[EltwiseError]:
    """Find the domains of operators that are not imported, and the functions of opsets that mean something else."""
    imports = {"": graph.origin.opset, **dict(graph.origin.other_opsets)}
    imports = {domain: version for domain, version in imports.items() if domain or version}
    yield from _missing(replace(graph, functions=()), {**_IMPLIED, **imports}, "")
    called = called_functions(graph)
    for function in graph.functions:
        owner = f"the function {function.name!r}"
        entries = getattr(function.body.message, "opset_import", ())
        of_function = {default_domain(entry.domain): entry.version for entry in entries}
        for entry in entries:
            domain, last = default_domain(entry.domain), of_function[default_domain(entry.domain)]
            if last != entry.version:
                problem = f"two opsets of the domain {_shown(domain)} are imported"
                yield GraphError(problem, operand=owner, got=f"{entry.version} and {last}")
        yield from _missing(function.body, of_function, owner)
        yield from _contradicting(function, of_function, imports, called)


def _missing(graph: Graph, imports: Imports, owner: str) -> Iterator[EltwiseError]:
    """Name the first node of each domain that is not imported."""
    domains = set(imports)
    for body in all_graphs(graph):
        for node in body.nodes:
            domain, name = node.operator
            if domain not in domains:
                domains.add(domain)
                problem = f"no opset of the domain {_shown(domain)} is imported"
                yield GraphError(problem, operand=owner).located(operator=name, node=node.label)


def _contradicting(
    function: Function, imports: Imports, of_model: Imports, called: frozenset[tuple[str, str]]
) -> Iterator[EltwiseError]:
    """Find operators of which the model's opset has another version: runtimes differ in the one that they run."""
    for body in all_graphs(function.body):
        for node in body.nodes:
            domain, name = node.operator
            versions = imports.get(domain), of_model.get(domain)
            if None in versions or versions[0] == versions[1] or (domain, name) in called:
                continue
            schemas = [published_schema(name, version or 0, domain) for version in versions]
            if not domain and schemas[0] is None:  # It is named as no operator of the function's opset.
                continue
            if len({schema.since_version if schema else None for schema in schemas}) > 1:
                problem = "the opset of the function has another version of this operator than that of the model"
                operand, got = f"the function {function.name!r}", " and ".join(map(str, versions))
                yield GraphError(problem, operand=operand, got=got).located(operator=name, node=node.label)


def _shown(domain: str) -> str:
    return repr(domain) if domain else "ai.onnx"
