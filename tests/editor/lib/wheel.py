"""A wheel of this checkout, for `pip install` without a network: it only says where everything is."""

import sys
import sysconfig
import zipfile
from pathlib import Path

repository = Path(__file__).resolve().parents[3]
places = [repository / "engine", repository / "server", sysconfig.get_path("purelib")]
info = "mugraph-0.1.0.dist-info"
files = {
    "mugraph_checkout.pth": "".join(f"{place}\n" for place in places),
    f"{info}/METADATA": "Metadata-Version: 2.1\nName: mugraph\nVersion: 0.1.0\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
