"""What comes of a task of a cluster: its result, however long that takes, or why there is none. Without a cluster."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.scale import cluster
from eltwise.scale.jobs import Resources

ADDRESS = "tcp://127.0.0.1:8786"
LOST, FAILED = f"{ADDRESS}: the connection to the scheduler was lost", f"{ADDRESS}: a task of the cluster failed"


class Future:
    """Gives one answer after the other, each in a status; an error is raised."""

    client = SimpleNamespace(scheduler=SimpleNamespace(address=ADDRESS))

    def __init__(self, *answers: tuple[str, object]) -> None:
        self.status, self.asked = "pending", list[float]()
        self._answers = iter(answers)

    def result(self, seconds: float) -> object:
        self.asked.append(seconds)
        self.status, answer = next(self._answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def _workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_await_workers", lambda _client, _resources: 1)


@pytest.mark.parametrize("status", ["finished", "pending", "lost"])
@pytest.mark.parametrize("late", range(4))
def test_a_result_that_takes_its_time_is_awaited_ever_longer(late: int, status: str) -> None:
    future = Future(*[(status, TimeoutError())] * late, ("finished", [5]))
    assert cluster._result(future, Resources()) == [5]
    assert future.asked == [2.0 * 2**turn for turn in range(late + 1)]


@pytest.mark.parametrize("late", [0, 2])
@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (UnsupportedError("as the operator says"), "error", "^as the operator says"),
        (ValueError("a bug"), "error", rf"^{FAILED} \(a bug\); run"),
        (TimeoutError("of the task itself"), "error", rf"^{FAILED} \(of the task itself\); run"),
        (
            ImportError("No module"),
            "error",
            rf"^{FAILED} \(No module\); every worker needs this version of eltwise; run",
        ),
        (asyncio.CancelledError(), "cancelled", f"^{LOST}; run"),
        (TimeoutError(), "cancelled", f"^{LOST}; run"),
        (OSError("closed"), "pending", f"^{LOST}; run"),
        (OSError("closed"), "lost", f"^{LOST}; run"),
    ],
)
def test_why_a_task_has_no_result(error: BaseException, status: str, message: str, late: int) -> None:
    future: Any = Future(*[("pending", TimeoutError())] * late, (status, error))
    with pytest.raises(EltwiseError, match=message):
        cluster._result(future, Resources())
