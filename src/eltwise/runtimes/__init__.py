"""Runtimes other than the caller: one adapter each, run in processes of their own, found by name."""

from eltwise.runtimes.host import Host, StoppedError
from eltwise.runtimes.program import Answer, Call, Model, Program
from eltwise.runtimes.registry import RUNTIMES, Runtime, find, installed

__all__ = ["RUNTIMES", "Answer", "Call", "Host", "Model", "Program", "Runtime", "StoppedError", "find", "installed"]
