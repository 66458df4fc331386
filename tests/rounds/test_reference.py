import re
from pathlib import Path

import agglo

SOURCES = Path(agglo.__file__).parent


def test_no_module_of_the_product_imports_the_specification():
    importing = re.compile(r"^\s*(from|import) .*\breference(_\w+)?\b", re.MULTILINE)
    modules = [path for path in SOURCES.rglob("*.py") if not path.stem.startswith("reference")]
    found = [str(path.relative_to(SOURCES)) for path in modules if importing.search(path.read_text("utf-8"))]
    assert found == ["__init__.py"]  # agglo.reference, imported when it is first used


def test_the_specification_of_the_rounds_imports_no_engine():
    for name in ("reference", "reference_connect", "reference_linkage", "reference_tree"):
        text = (SOURCES / "rounds" / f"{name}.py").read_text("utf-8")
        assert not re.search(
            r"import .*(_core|numpy_engine|forest_builder)|rounds\.(algorithms|numpy_engine)", text
        )
