"""Check an installed wheel: fit, predict, and draw the picture of `agglo demo`. Run it by the Python to check."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import agglo


def main():
    installed = Path(agglo.__file__).resolve()
    source = Path(__file__).resolve().parents[1] / "src"
    assert source not in installed.parents, f"{installed} is the source, not an installed wheel"

    centers = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 50, axis=0)
    X = centers + np.random.default_rng(0).normal(size=centers.shape)
    model = agglo.SCC(metric="euclidean").fit(X)
    assert len(set(model.labels_)) == 3
    assert (model.predict(X) == model.labels_).all()

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "agglo", "demo", "-o", folder], check=True)
        pictures = list(Path(folder).glob("*.png"))
        assert pictures, "agglo demo wrote no picture"
    print(f"{installed.parent} works: {len(pictures)} picture(s) from agglo demo")


if __name__ == "__main__":
    main()
