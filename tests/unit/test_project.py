"""The repository's own files agree with the code and with each other."""

import importlib.util
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import cuarl
from cuarl.settings import SECRETS, Settings

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def reference():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_reference_is_fresh():
    stale = [path.name for path, text in reference().pages().items() if text != path.read_text(encoding="utf-8")]
    assert stale == [], "run `make docs`"


def test_the_changelog_begins_with_this_version():
    versions = re.findall(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert next(v for v in versions if v != "Unreleased") == cuarl.__version__ == metadata.version("cuarl")


def test_the_example_of_dotenv_has_every_setting_and_nothing_else():
    text = (ROOT / ".env.example").read_text()
    listed = set(re.findall(r"^#? ?([A-Z_]+)=", text, re.MULTILINE))
    known = {Settings.variables(name)[0] for name in Settings.model_fields}
    assert listed == known
    assert set(SECRETS) <= known


def test_every_dependency_is_pinned_within_its_range():
    pins = dict(
        line.lower().replace("_", "-").split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    extras = PROJECT["project"]["optional-dependencies"].values()
    for text in [*PROJECT["project"]["dependencies"], *(one for extra in extras for one in extra)]:
        wanted = Requirement(text)
        pin = pins.get(wanted.name.lower().replace("_", "-"))
        assert pin is not None, f"{wanted.name} is not pinned"
        assert wanted.specifier.contains(pin), f"{wanted.name} {pin} is not {wanted.specifier}"


def prose(path):
    """A page without its code, which may look like links and headings."""
    return re.sub(r"^( *```).*?^\1$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(path):
    """What a page's headings can be linked to by, as GitHub makes it of their words."""
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    }


PAGES = [
    *ROOT.glob("*.md"),
    *(p for part in ("docs", "examples", "cuarl", "tasks") for p in (ROOT / part).rglob("*.md")),
]


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_links_between_pages_lead_somewhere(page):
    missing = []
    for link in re.findall(r"\]\((?!\w+:)([^)\s]+)", prose(ROOT / page)):
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(link)
    assert missing == []


def test_every_page_of_the_docs_is_on_the_map():
    """A page is linked from the map, docs/README.md, or from the list of its folder."""
    docs = ROOT / "docs"
    maps = [docs / "README.md", docs / "results" / "README.md", docs / "decisions" / "README.md"]
    linked = {(page.parent / link).resolve() for page in maps for link in re.findall(r"\]\(([^)#]+)", prose(page))}
    assert [
        str(p.relative_to(docs)) for p in docs.rglob("*.md") if p.resolve() not in linked and p.name != "README.md"
    ] == []


def test_pages_that_the_code_names_are_there():
    files = [p for part in ("cuarl", "examples", "tasks", "benchmarks") for p in (ROOT / part).rglob("*.*")]
    texts = {p: p.read_text(encoding="utf-8") for p in files if p.suffix in (".py", ".yaml", ".sh")}
    gone = {
        f"{path.relative_to(ROOT)}: {name}"
        for path, text in texts.items()
        for name in re.findall(r"\bdocs/[\w/.-]+\.md", text)
        if not (ROOT / name).exists()
    }
    assert gone == set()


def test_the_ci_calls_only_targets_of_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = re.findall(r"^ *make ([a-z -]+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    called = [target for line in lines for target in line.split()]
    assert set(called) <= targets and {"lint", "types", "test"} <= set(called)
