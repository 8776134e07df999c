"""What stands around a node: found in models of both dialects, asked of runtimes, and told where it changes bits."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import eltwise
from eltwise import oracle
from eltwise.conformance import models, paths, runtimes
from eltwise.conformance.models import BuiltModel
from eltwise.conformance.paths import CHAINED
from eltwise.conformance.process import Process
from eltwise.conformance.questions import Subject as Question
from eltwise.conformance.questions import subjects
from eltwise.conformance.runtimes.asking import Loaded
from eltwise.conformance.runtimes.own import Eltwise
from eltwise.conformance.verdicts import Truth
from eltwise.formats.onnx.writer import write_model_proto
from eltwise.ir.infer_graph import infer_graph
from eltwise.passes.company import Company, all_companies
from eltwise.passes.graph_places import graph_places
from eltwise.report.reasons import LEFT_OUT, TOGETHER
from eltwise.targets.asking import answers_of
from eltwise.targets.circumstances import Request, question_of
from eltwise.targets.companies import chained_cases
from eltwise.targets.examining import of_proto
from eltwise.targets.table import Answer, Measurement, Subject
from openvino_models import Ir
from random_chains import random_chain

_SHARE = 3
"""Of many models that differ little one in so many is run for each subject, another for the next one."""


def model(
    *nodes: onnx.NodeProto, constants: dict[str, list[float]] | None = None, sizes: object = 2
) -> onnx.ModelProto:
    held = [numpy_helper.from_array(np.float32(value), name) for name, value in (constants or {}).items()]
    read = {name for node in nodes for name in node.input}
    inputs = [helper.make_tensor_value_info(name, 1, [sizes]) for name in sorted(read & {"x", "y", "z"})]
    outputs = [helper.make_tensor_value_info(nodes[-1].output[0], 1, None)]
    graph = helper.make_graph(nodes, "company", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def node(kind: str, inputs: str, output: str) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output], name=output)


def last_companies(made: onnx.ModelProto) -> set[str]:
    """The companies of the last node, which are the same in the file and in the graph that is read from it."""
    graph = eltwise.load(made).graph
    in_graph = [place for _number, place in graph_places(graph, infer_graph(graph).types)][-1].companies
    in_file = of_proto(made).places[-1].companies
    assert set(in_file) <= set(in_graph)
    return set(map(str, in_file))


def test_what_makes_an_operand_is_found() -> None:
    product = node("Mul", "x y", "p")
    assert last_companies(model(product, node("Add", "p z", "r"))) == {"a after multiply, b run-time"}
    assert last_companies(model(product, node("Add", "z p", "r"))) == {"b after multiply, a run-time"}
    assert last_companies(model(product, node("Add", "p z", "r"), sizes="N")) == {
        "a after multiply, b run-time, dynamic"
    }
    through = (product, node("Identity", "p", "q"), node("Add", "q z", "r"))
    assert last_companies(model(*through)) == {"a after multiply, b run-time"}
    twice = (product, node("Sub", "p x", "s"), node("Mul", "s p", "t"), node("Add", "t p", "r"))
    assert "b after multiply, a run-time, shared" in last_companies(model(*twice))
    needless = (product, node("Sub", "p x", "s"), node("Add", "p z", "r"))
    assert last_companies(model(*needless)) == {"a after multiply, b run-time"}
    both = (product, node("Sub", "x y", "s"), node("Add", "p s", "r"))
    assert last_companies(model(*both)) == {"a after multiply, b run-time", "b after subtract, a run-time"}
    assert last_companies(model(node("Sub", "x y", "r"))) == set()


def test_constants_and_zeros_are_told_apart() -> None:
    constants = {"k": [2, 3], "zero": [0], "less": [-0.0], "both": [0, -0.0]}
    scaled = node("Mul", "x k", "p")
    assert last_companies(model(scaled, node("Add", "p k", "r"), constants=constants)) == {
        "a after multiply with a constant, b constant"
    }
    assert last_companies(model(node("Add", "x zero", "r"), constants=constants)) == {
        "a given, b number",
        "a given, b zero",
    }
    assert last_companies(model(node("Sub", "less x", "r"), constants=constants)) == {
        "b given, a number",
        "b given, a -zero",
    }
    assert last_companies(model(node("Sub", "x both", "r"), constants=constants)) == {
        "a given, b constant",
        "a given, b zeros",
        "a given, b -zeros",
    }
    assert last_companies(model(node("Add", "x k", "r"), constants=constants)) == {"a given, b constant"}
    assert last_companies(model(node("Add", "x one", "r"), constants={"one": [1]})) == {"a given, b number"}


def test_a_cast_that_makes_an_operand_counts_for_types_that_are_computed_in_float32() -> None:
    cast = helper.make_node("Cast", ["x"], ["p"], name="p", to=10)
    made = model(cast, node("Sub", "p p", "r"))
    made.graph.output[0].type.tensor_type.elem_type = 10
    names = {"a after cast, b run-time", "b after cast, a run-time"}
    assert last_companies(made) == names
    made.graph.node[0].attribute[0].i = made.graph.output[0].type.tensor_type.elem_type = 11
    assert last_companies(made) == set()


def test_an_input_that_has_a_value_may_be_a_constant() -> None:
    made = model(node("Add", "x zero", "r"), constants={"zero": [0]})
    made.graph.input.append(helper.make_tensor_value_info("zero", 1, [1]))
    kinds = {"b zero", "b -zero", "b zeros", "b -zeros", "b constant", "b number"}
    assert last_companies(made) == {f"a given, {kind}" for kind in kinds}


def test_zero_behind_another_operator_counts_behind_each_that_is_known() -> None:
    relu = model(node("Relu", "x", "p"), node("Add", "p zero", "r"), constants={"zero": [0]})
    (place,) = of_proto(relu).places
    assert {company.before for company in place.companies} == {"", "subtract", "add", "multiply"}
    assert place.is_beside_others
    assert not of_proto(model(node("Mul", "x y", "p"), node("Add", "p z", "r"))).places[-1].is_beside_others


@pytest.mark.parametrize(("kind", "reads"), [("i4", [True, False]), ("i8", [False, False])])
def test_results_of_4_bits_may_stay_in_8_whoever_reads_them(kind: str, reads: list[bool]) -> None:
    """Pairs of such nodes cannot overflow 8 bits, so that their company does not show it."""
    ir = Ir().parameter("a", "2,3", kind).parameter("b", "2,3", kind)
    ir.layer("Multiply", "m", ["a", "b"], precision=kind.upper()).layer(
        "Subtract", "s", ["m", "b"], precision=kind.upper()
    )
    graph = eltwise.load(ir.result("s", "r").xml(), b"").graph
    places = [place for _number, place in graph_places(graph, infer_graph(graph).types)]
    assert ["read-wider" in place.surroundings for place in places] == reads


def test_companies_have_names_of_their_own() -> None:
    companies = list(all_companies())
    assert len({str(company) for company in companies}) == len(set(companies)) == len(companies)


def questions() -> list[Question]:
    """Of every row and rule a type of floats and one of integers."""
    kinds = ("float32", "float16", "int8")
    return [question for question in subjects() if question.element_type.name in kinds]


@pytest.mark.parametrize("domain", ["ai.onnx", "openvino"])
def test_whatever_company_a_chain_has_is_asked(domain: str, seed: int) -> None:
    found = 0
    asked: dict[Subject, set[Company]] = {}
    for number in range(80):
        graph, _feeds = random_chain(np.random.default_rng([seed, number]), domain)
        if domain == "ai.onnx":
            places = list(of_proto(write_model_proto(graph)).places)
        else:
            places = [place for _number, place in graph_places(graph, infer_graph(graph).types)]
        for place in places:
            assert place.element_type is not None
            subject = Subject(place.schema.versioned_name, place.element_type.name, place.rule)
            if subject not in asked:
                asked[subject] = {company for company, _case in chained_cases(question_of(subject), 0)}
            assert set(place.companies) <= asked[subject]
            found += len(place.companies)
    assert found > 60


def test_the_cases_of_a_company_are_what_its_name_says() -> None:
    several = [
        question for question in questions() if str(question.schema) in ("Sub-6", "Add-14", "SquaredDifference-1")
    ]
    others = [question_of(Subject("Mul-14", kind, "numpy")) for kind in ("float64", "bfloat16")]
    for question in (*several, *others):
        for company, case in list(chained_cases(question, 0))[::_SHARE]:
            around = case.around
            assert around is not None
            own, other = (case.a, case.b) if company.slot == "a" else (case.b, case.a)
            if around.is_cast:
                assert oracle.same_bits(own, around.x.astype(own.dtype))
            elif not around.maker or (company.is_static and not company.is_shared):  # The same values as in the others.
                made = around.maker and oracle.evaluate(around.maker.function, around.x, around.y, "numpy")
                assert oracle.same_bits(own, around.x if made is None else made)
            assert (around.maker.function if around.maker else "cast" if around.is_cast else "") == company.before
            assert (set("xy") & set(around.constants) != set()) == company.has_constant
            assert (set("ab") & set(around.constants) != set()) == (company.other != "run-time")
            assert (company.is_with_neutral and company.other != "almost neutral") == (not other.astype(float).any())


@pytest.mark.parametrize("op", ["Sub-6", "Add-14", "Mul-7", "Subtract-1", "SquaredDifference-1"])
def test_the_models_of_companies_mean_what_the_oracle_says(op: str) -> None:
    """The engine gives the expected bits in every company, so that the models hold what the cases say."""
    own, truth = Eltwise(), Truth()
    asked = [question for question in questions() if str(question.schema) == op]
    for number, question in enumerate(asked):
        cases = [case for _company, case in chained_cases(question, 0)][number % _SHARE :: _SHARE]
        for start in range(0, len(cases), 64):
            group = cases[start : start + 64]
            results = own.load(models.build(group, CHAINED))(paths.feeds(group, CHAINED))
            assert len(results) == len(paths.output_names(group, CHAINED))
            for case, result in zip(group, results, strict=False):
                expected = truth.of(case)
                assert expected is not None
                assert oracle.same_bits(result, expected), case


class Joining(Eltwise):
    """Leaves a constant +0 of one element out that is added, and adds two constants before what they are added to."""

    def load(self, built: BuiltModel) -> Loaded:
        proto = onnx.load_from_string(built.data)
        held = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
        makers = {made.output[0]: made for made in proto.graph.node}
        for found in proto.graph.node:
            if found.op_type != "Add" or found.input[1] not in held:
                continue
            constant, before = held[found.input[1]], makers.get(found.input[0])
            if constant.size == 1 and not constant.any() and not np.signbit(constant).any():
                found.op_type = "Identity"
                del found.input[1]
            elif before is not None and before.op_type == "Add" and before.input[1] in held:
                name = f"joined_{found.name}"
                with np.errstate(all="ignore"):
                    both = np.asarray(held[before.input[1]] + constant)
                proto.graph.initializer.append(numpy_helper.from_array(both, name))
                found.input[:] = [before.input[0], name]
        return super().load(replace(built, data=proto.SerializeToString()))


def test_a_runtime_that_joins_nodes_is_caught() -> None:
    folders = (Path(eltwise.__file__).parent.parent, Path(__file__).parents[1])
    environment = {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    planted = replace(runtimes.find("eltwise-numpy"), adapter="test_company:Joining", environment=environment)
    subject = Subject("Add-14", "float32", "numpy")
    with Process(planted, 60.0) as process:
        found = answers_of(process, question_of(subject), Request(), Truth())
    alone = {
        circumstance
        for circumstance, answer in found.items()
        if not isinstance(circumstance, Company) and not answer.runs
    }
    assert {layout for _way_in, layout in alone} <= {"broadcast", "high rank"}  # Where B is one zero.
    in_company = {circumstance: answer for circumstance, answer in found.items() if isinstance(circumstance, Company)}
    assert len(in_company) == len({company for company, _case in chained_cases(question_of(subject), 0)})
    for company, answer in in_company.items():
        is_zero = company.slot == "a" and company.other == "zero"
        is_joined = (
            company.before == "add" and company.has_constant and company.slot == "a" and company.other == "constant"
        )
        wanted = ("differs", (LEFT_OUT,) if is_zero else (TOGETHER,)) if is_zero or is_joined else ("runs", ())
        assert (answer.kind, answer.reasons) == wanted, company


def test_where_a_company_goes_wrong_the_node_does_and_the_company_is_named() -> None:
    subject = Subject("Add-14", "float32", "numpy")
    made = model(node("Mul", "x y", "p"), node("Add", "p z", "r"))
    place = of_proto(made).places[-1]
    (company,) = place.companies
    runs = {(way_in, layout): Answer("runs") for way_in in place.surroundings for layout in place.layouts}
    for answer in (Answer("runs"), Answer("differs", (TOGETHER,), "one step")):
        measurement = Measurement("onnxruntime", "1", answers={subject: {**runs, company: answer}})
        got = measurement.answer(place)
        assert (got.kind, got.reasons) == (answer.kind, answer.reasons)
        assert (str(company) in got.words) == (answer.kind == "differs")
    assert Measurement("onnxruntime", "1", answers={subject: runs}).answer(place).kind == "not measured"
