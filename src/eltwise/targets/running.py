"""The process that runs one model on a runtime: ``python -m eltwise.targets.running ADAPTER``, frames on its input.

The first frame has the model, each further one the arrays of a run. For each run, in order, a frame with the results is
written to its output; where the runtime refuses, one with its words, which is the last.
"""

from __future__ import annotations

import importlib
import sys
import warnings

from eltwise.conformance.answers import words_of
from eltwise.conformance.models import BuiltModel
from eltwise.conformance.runtimes.asking import Runtime
from eltwise.conformance.wire import Message, receive, send
from eltwise.conformance.worker import end_with_the_parent, own_streams


def main() -> None:
    """Load the model and run it until the input ends."""
    end_with_the_parent()
    incoming, outgoing = own_streams()
    warnings.simplefilter("ignore")
    module, _colon, kind = sys.argv[1].partition(":")
    first = receive(incoming)
    assert first is not None
    data, weights = (array.tobytes() for array in first.arrays)
    dialect = str(first.fields["dialect"])
    try:
        runtime: Runtime = getattr(importlib.import_module(module), kind)()
        run = runtime.load(BuiltModel(dialect, data, weights, (), ()))  # type: ignore[arg-type]
        while (message := receive(incoming)) is not None:
            names = message.fields["inputs"]
            assert isinstance(names, list)
            send(outgoing, Message({}, tuple(run(dict(zip(names, message.arrays, strict=True))))))
    except Exception as error:  # noqa: BLE001 - whatever a runtime raises is its refusal
        send(outgoing, Message({"refused": words_of(error)}))


if __name__ == "__main__":
    main()
