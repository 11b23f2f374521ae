"""Verdicts of `laggard why` on real evidence: their JSON Schema, and source text that stays out of kept files."""

import json
import os
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "schemas" / "why-1.json").read_text())
EVIDENCE = sorted((ROOT / "fixtures" / "real").glob("*.json.gz")) + sorted((ROOT / "fixtures" / "culprits").glob("*.json"))


def judge(laggard, path, *flags):
    return json.loads(laggard("why", "--json", *flags, "--from", path).stdout)


@pytest.mark.parametrize("path", EVIDENCE, ids=lambda path: path.name)
def test_verdicts_match_their_schema(laggard, path):
    verdict = judge(laggard, path)
    jsonschema.validate(verdict, SCHEMA)
    shares = sum(culprit["explains"] for culprit in verdict["culprits"])
    if verdict["culprits"]:
        assert shares + verdict["not_explained"] == pytest.approx(1, abs=1e-6)


def test_exchanged_sides_match_the_schema(laggard):
    sides = ["[i in x for i in x[-20:]]", "[True] * 20"]
    verdict = json.loads(laggard("why", "--json", "--time", "3", "--setup", "x = [*range(3000)]", *sides).stdout)
    jsonschema.validate(verdict, SCHEMA)
    assert verdict["exchanged"] and [side["runs"] for side in verdict["sides"]] == sides[::-1]


@pytest.fixture
def verdict_file(laggard, tmp_path):
    """A function that runs `why` on two versions of a module and returns the file that it wrote."""
    for side, body in [("a", "    return sum(x)\n"), ("b", "    total = 0  # \x1b[31mmarked\n    for i in x:\n        total += i\n    return total\n")]:
        folder = tmp_path / side
        folder.mkdir()
        (folder / "adding.py").write_text(f"def add(x):\n{body}")

    def run(*flags):
        out = tmp_path / "why.json"
        words = ["why", "-q", "--time", "4", "-o", out, "--force", *flags]
        words += ["--a-env", f"PYTHONPATH={tmp_path / 'a'}", "--b-env", f"PYTHONPATH={tmp_path / 'b'}"]
        words += ["--setup", "import adding; x = list(range(20000))", "adding.add(x)", "adding.add(x)"]
        laggard(*words)
        return out

    return run


def test_the_place_is_named_with_its_changed_source(laggard, verdict_file, tmp_path):
    kept = verdict_file()
    assert "total += i" not in kept.read_text()
    assert "total += i" in verdict_file("--keep-source").read_text()
    assert "total += i" not in verdict_file("--no-source").read_text()
    first = judge(laggard, kept)["culprits"][0]
    jsonschema.validate(judge(laggard, kept), SCHEMA)
    assert first["kind"] == "other-path" and first["at"].startswith("add (") and "adding.py:" in first["at"]
    assert any("total += i" in line["text"] for line in first["source"]["diff"])
    text = laggard("why", "--from", kept).stdout
    assert "total += i" in text and "\x1b" not in text
    page = tmp_path / "why.html"
    laggard("why", "-q", "--from", kept, "-o", page)
    assert "total += i" in page.read_text()
    plain = laggard("why", "--no-source", "--from", kept).stdout
    assert "total" not in plain


def test_source_that_is_gone_or_changed_is_reported(laggard, verdict_file, tmp_path):
    kept = verdict_file()
    source = tmp_path / "b" / "adding.py"
    source.write_text("def add(x):\n    return 0\n")
    later = source.stat().st_mtime + 1000
    os.utime(source, (later, later))
    assert judge(laggard, kept)["culprits"][0]["source"]["b"]["missing"] == "source file changed since the measurement"
    source.unlink()
    assert judge(laggard, kept)["culprits"][0]["source"]["b"]["missing"] == "source file not readable"
    os.mkfifo(source)
    assert judge(laggard, kept)["culprits"][0]["source"]["b"]["missing"] == "source file not readable"


def test_unusual_source_is_shown_or_left_out_with_a_reason(laggard, verdict_file, tmp_path):
    kept = verdict_file()
    source = tmp_path / "b" / "adding.py"

    def shown(content):
        """The source of B if its file, not newer than the measurement, has this content."""
        source.write_bytes(content)
        os.utime(source, (0, 0))
        return judge(laggard, kept)["culprits"][0]["source"]["b"]

    body = source.read_bytes()
    assert shown(body.replace(b"\x1b[31mmarked", b"\xe9\xff")).get("missing") is None
    assert shown(body.replace(b"def add", b"def cat"))["missing"] == "source file changed since the measurement"
    assert shown(b"")["missing"] == "source file changed since the measurement"
    assert shown(body + b"#" * (9 << 20))["missing"] == "source file too large"
