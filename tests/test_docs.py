"""What the README and the documentation show is what happens: every console command and every Python line is run."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import eltwise
from eltwise.engine.functions import FUNCTIONS
from eltwise.faults.families import FAMILIES
from eltwise.ops import registry
from eltwise.passes.opset_changes import STEPS
from eltwise.targets.rules import SHIPPED, read_rules, runtimes_in
from support.local_hosts import use_local_hosts
from support.scripts import script

ROOT = Path(__file__).parent.parent
GENERATED = ROOT / "docs" / "conformance.md"
PAGES = [ROOT / "README.md", *sorted(set((ROOT / "docs").rglob("*.md")) - {GENERATED})]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLED = re.compile(r'^```python title="([\w.]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
"""The files that a page has, with their names."""

Cli = Callable[..., tuple[int, str, str]]


def output_of_pytest(arguments: list[str]) -> str:
    """The output of pytest with the plugin."""
    plugins = ("-p", "pytest_eltwise", "-p", "no:cacheprovider")
    settings = {"PYTHONPATH": str(Path(eltwise.__file__).parent.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", *plugins, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings}, check=False)  # noqa: S603
    return done.stdout + done.stderr


def blocks(page: Path, languages: tuple[str, ...], mark: str) -> list[str]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [text for language, text in found if language in languages and mark in text]


def pages_with(languages: tuple[str, ...], mark: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, languages, mark)]


def anywhere(text: str) -> str:
    """Leave out what depends on the processor and on the installed version of a runtime."""
    text = re.sub(r"\), [^()]*, \w+, Python [\d.]+\)", "))", text)
    text = re.sub(r"(onnxruntime|openvino) [\d.]+(?: \(CPU, inference precision \w+ by default\))?", r"\1", text)
    text = re.sub(r"(\d (?:passed|failed|deselected)) in [\d.]+s", r"\1", text)
    text = re.sub(r"\d+ equal, \d+ within tolerance", "all equal or within tolerance", text)
    text = re.sub(r"^(output '.*': )(equal|within tolerance), .*$", r"\1right", text, flags=re.MULTILINE)
    return re.sub(r"^(note: |assumed: .* is installed here, the rules are of ).*\n", "", text, flags=re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def folder(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the example models; the README's runtimes have processes, as its readers' do."""
    if page.stem != "README":
        use_local_hosts(monkeypatch)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", pages_with(("console",), "$ "), ids=name_of)
@pytest.mark.usefixtures("folder")
def test_commands_print_what_is_shown(page: Path, cli: Cli) -> None:
    """The commands of a page run one after the other in one folder, since some read what others wrote."""
    if page.stem == "two-versions" and "ELTWISE_REGRESSIONS" not in os.environ:
        pytest.skip("needs another version of a runtime: make test-regressions")
    for name, text in TITLED.findall(page.read_text(encoding="utf-8")):
        Path(name).write_text(text, encoding="utf-8")
    for block in blocks(page, ("console",), "$ "):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _newline, shown = part.partition("\n")
            program, *arguments = shlex.split(command)
            assert program in ("eltwise", "pytest")
            output = output_of_pytest(arguments) if program == "pytest" else "".join(cli(*arguments)[1:])
            assert anywhere(output) == anywhere(shown), command


@pytest.mark.parametrize("page", pages_with(("pycon", "python"), ">>> "), ids=name_of)
@pytest.mark.usefixtures("folder")
def test_python_lines_give_what_is_shown(page: Path) -> None:
    text = "\n".join(blocks(page, ("pycon", "python"), ">>> "))
    test = doctest.DocTestParser().get_doctest(text, {}, name_of(page), str(page), 0)
    assert test.examples
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function_gives_what_is_shown(name: str) -> None:
    test = doctest.DocTestParser().get_doctest(getattr(eltwise, name).__doc__, {}, name, None, 0)
    assert test.examples
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_the_readme_fits_on_two_screens() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    """The build of the site checks the links between its pages; this also checks those of the repository's files."""
    made = {ROOT / "docs" / "contributing.md", ROOT / "docs" / "changelog.md"}
    made |= {ROOT / "docs" / "reference" / f"{name}.md" for name in ("operators", "command-line")}
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        target = (page.parent / link).resolve()
        assert target.exists() or target in made, link


def test_the_workflow_of_the_guide_is_the_file() -> None:
    text = (ROOT / "examples" / "workflows" / "models.yml").read_text(encoding="utf-8")
    assert f"```yaml\n{text}```" in (ROOT / "docs" / "guides" / "ci.md").read_text(encoding="utf-8")


def test_the_diff_of_an_operator_is_in_the_sources() -> None:
    (diff,) = re.findall(r"^```diff\n(.*?)^```$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
    source = ""
    for line in diff.splitlines():
        if line.startswith("+++ "):
            source = (ROOT / line.removeprefix("+++ ")).read_text(encoding="utf-8")
        elif line.startswith("+"):
            assert line.removeprefix("+") in source, line


def site() -> ModuleType:
    pytest.importorskip("mkdocs")
    return script("docs/site.py")


def test_the_page_of_operators_lists_the_registry() -> None:
    page = site().operators_page()
    for schema in (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT):
        assert f"{schema.versioned_name}" in page


def test_the_table_of_fault_families_has_a_sentence_for_each_that_a_rule_names() -> None:
    table = site().families_table()
    families = {rule.fault for name in runtimes_in(SHIPPED) for rule in read_rules(SHIPPED, name).rules}
    assert all(f"| `{family}` |" in table for family in families if not family.endswith("_arithmetic"))


def test_every_cause_of_the_guide_to_compare_is_in_the_catalog() -> None:
    text = (ROOT / "docs" / "guides" / "compare.md").read_text(encoding="utf-8")
    table = text[text.index("| cause |") : text.index("`explanation_details` of")]
    causes = {cause for row in table.splitlines()[2:] for cause in re.findall("`([a-z0-9_]+)`", row.split(" | ")[0])}
    assert len(causes) > 30
    assert causes <= FAMILIES.keys()


def test_the_table_of_converter_faults_has_links() -> None:
    assert site().faults_table().count("](https://") == sum(not step.by_converter for step in STEPS)


def test_an_undocumented_public_name_is_found() -> None:
    html = "".join(f'<h3 id="eltwise.{name}">' for name in dir(eltwise) + eltwise.__all__)
    assert site().undocumented(html) == []
    assert site().undocumented(html.replace('"eltwise.load"', '""')) == ["load"]


def test_the_page_of_commands_lists_every_option() -> None:
    page = site().command_line_page()
    for words in ("## convert", "`--opset N`", "`--attr NAME=VALUE`", "`--verify`"):
        assert words in page
