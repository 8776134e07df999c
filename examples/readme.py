"""Run the README's lines of Python and compare what they give with what it shows."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def main() -> None:
    """Run them; a difference is an error."""
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    for number, block in enumerate(re.findall(r"```pycon\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)):
        runner.run(doctest.DocTestParser().get_doctest(block, {}, f"README block {number}", None, None))
    print(runner.summarize())
    raise SystemExit(runner.failures > 0 or not runner.tries)


if __name__ == "__main__":
    main()
