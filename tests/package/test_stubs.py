"""Type checks of the package."""

import importlib.resources
import subprocess
import sys

import pytest

pytest.importorskip("mypy")


def test_stubs_match_the_extension():
    line = [sys.executable, "-m", "mypy.stubtest", "laggard._laggard"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_package_passes_strict_type_checks():
    assert (importlib.resources.files("laggard") / "py.typed").is_file()
    line = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "-p", "laggard"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
