"""A headless Chromium for tests, spoken to over a pipe in its DevTools protocol: nothing else is needed.

Source: https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
_PATIENCE_SECONDS = 300.0
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36}
_KEYS |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}

_FAINT = """((besides) => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => numbers(colour).slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const behind = (node) => { const colour = node ? getComputedStyle(node).backgroundColor : 'rgb(255, 255, 255)';
    return numbers(colour)[3] === 0 ? behind(node.parentElement) : colour; };
  const shown = [...document.querySelectorAll('body *')].filter((node) => node.checkVisibility()
    && [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim())
    && !['SCRIPT', 'NOSCRIPT', 'OPTION'].includes(node.tagName) && !node.matches(besides));
  return shown.map((node) => {
    const [one, other] = [light(getComputedStyle(node).color), light(behind(node))].sort((a, b) => b - a);
    return [(one + 0.05) / (other + 0.05), node.className || node.tagName, node.textContent.slice(0, 30)];
  }).filter(([contrast]) => contrast < 4.5); })(%s)"""
"""The visible texts whose contrast is below the 4.5 of WCAG."""


def find_browser() -> str | None:
    """The path of an installed Chromium; None where there is none."""
    return next(filter(None, map(shutil.which, (os.environ.get("ELTWISE_BROWSER", ""), *_NAMES))), None)


class Page:
    """One tab: what it is told, what it logs and what it asks the network for."""

    def __init__(self, process: subprocess.Popen[bytes], sending: int, receiving: int) -> None:
        self._process, self._sending, self._receiving = process, sending, receiving
        self._buffer, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.tell(f"{domain}.enable")

    def tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and wait for its answer; events that come before it are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._sending, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._receiving], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self._receiving, 1 << 20)
            assert read, f"the browser ended with exit code {self._process.poll()}"
            self._buffer += read
        message, _, self._buffer = self._buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded

    def go(self, url: str) -> None:
        """Open an address anew and wait until it is loaded."""
        for address in ("about:blank", url):
            self.events.clear()
            self.tell("Page.navigate", url=address)
            while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
                self.events.append(self._receive())

    def ask(self, expression: str) -> Any:
        """Evaluate JavaScript and give its value."""
        answer = self.tell("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, *keys: str) -> None:
        """Press keys as a person does, one after the other."""
        for key in keys:
            text = {"text": "\r"} if key == "Enter" else {}
            code = {"key": key, "code": key, "windowsVirtualKeyCode": _KEYS[key]}
            self.tell("Input.dispatchKeyEvent", type="keyDown", **code, **text)
            self.tell("Input.dispatchKeyEvent", type="keyUp", **code)
            self._settle()

    def click(self, selector: str) -> None:
        """Click in the middle of the first element that a CSS selector finds."""
        box = self.ask(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)});"
            "found.scrollIntoView({block: 'center', inline: 'center'});"
            "const box = found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        place = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        self.tell("Input.dispatchMouseEvent", type="mousePressed", **place)
        self.tell("Input.dispatchMouseEvent", type="mouseReleased", **place)
        self._settle()

    def resize(self, width: int, height: int, dark: bool = False) -> None:
        """Set the size of the window in CSS pixels, and the colour scheme."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])

    def check_looks(self, width: int, height: int, dark: bool, besides: str = "[hidden]") -> None:
        """Nothing is wider than the window, the page is dark or light as asked, and every text can be read.

        No text is what a script writes where a value is missing.
        ``besides`` selects texts that need not.
        """
        self.resize(width, height, dark)
        assert not self.ask("document.documentElement.scrollWidth > innerWidth")
        background = self.ask("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, background[4:-1].split(","))) < 384) == dark
        assert self.ask(_FAINT % json.dumps(besides)) == []
        assert not self.ask("document.body.innerText.match(/undefined|NaN of|of NaN|\\[object/)")

    def picture(self, path: Path, whole: bool = False) -> None:
        """Save a screenshot, of the window or of the whole page."""
        data = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Everything that was logged or thrown since the page was opened."""
        self._settle()
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self.events if event.get("method") in kinds]

    def _settle(self) -> None:
        """Let the page's own tasks run: events that it is still to be told of."""
        self.ask("new Promise((resolve) => setTimeout(resolve, 20))")

    def requests(self) -> list[str]:
        """Every address that was asked for since the page was opened, data in the page itself aside."""
        asked = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        urls: Sequence[str] = [event["params"]["request"]["url"] for event in asked]
        return [url for url in urls if not url.startswith("data:")]


@contextmanager
def open_browser(program: str, profile: Path) -> Iterator[Page]:
    """Start a browser with a profile folder of its own, and end it."""
    for_it, sending = os.pipe()
    receiving, from_it = os.pipe()

    def hand_over() -> None:
        # Out of the way of 3 and 4 first: either may be one of those numbers.
        reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (for_it, from_it))
        os.dup2(reading, 3)
        os.dup2(writing, 4)

    process = subprocess.Popen(  # noqa: S603 - the test's own choice of program
        [program, *_OPTIONS, f"--user-data-dir={profile}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=hand_over,  # noqa: PLW1509 - the protocol's pipes must be numbers 3 and 4
        close_fds=False,
    )
    os.close(for_it)
    os.close(from_it)
    try:
        yield Page(process, sending, receiving)
    finally:
        process.kill()
        process.wait()
        os.close(sending)
        os.close(receiving)
