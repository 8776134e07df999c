"""The peers: every runtime that is measured beside this project where it is installed."""

from __future__ import annotations

from importlib.util import find_spec

from eltwise.bench.contestants import Peer
from eltwise.bench.libraries import Jax, Numexpr, Numpy, Torch
from eltwise.bench.runtimes import OnnxRuntime, OpenVino

ALL: tuple[Peer, ...] = (Numpy(), Torch(), OnnxRuntime(), OpenVino(), Numexpr(), Jax())


def installed() -> tuple[Peer, ...]:
    """The peers whose packages are here; none is imported to find out."""
    return tuple(peer for peer in ALL if find_spec(peer.name) is not None)


def missing() -> tuple[str, ...]:
    """The names of the peers that are not installed."""
    return tuple(peer.name for peer in ALL if find_spec(peer.name) is None)
