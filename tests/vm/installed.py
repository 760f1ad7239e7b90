# SPDX-License-Identifier: Apache-2.0
"""Programs of the build where every user may run them; the checkout may be closed to others than its owner."""

import shutil
import tempfile
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "build/release"


def install(*names: str) -> Path:
    """Copies these files of the build to a new folder, which is returned."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    for name in names:
        copy = folder / Path(name).name
        shutil.copyfile(BUILD / name, copy)
        copy.chmod(0o755)
    return folder
