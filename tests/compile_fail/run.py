#!/usr/bin/env python3
"""Check that each mistake in this folder is refused. The first line of a file says how: `// expect: SENTENCE` (the compiler must fail and say it),
`// expect-error` (it must fail, in its own words), or `// expect-success` (the control: the same form without the mistake)."""
import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-DWEFT_SEPARATE_COMPILATION", f"-I{HERE.parent.parent / 'include'}"]


def check(command, path):
    """What is wrong with one file's compilation; an empty string when it went as the file says."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    done = subprocess.run([*command, "-fsyntax-only", str(path)], capture_output=True, text=True)
    if first == "// expect-success":
        return "" if done.returncode == 0 else "does not compile:\n" + done.stderr
    if done.returncode == 0:
        return "compiles"
    if first == "// expect-error":
        return ""
    if not first.startswith("// expect: "):
        return "its first line does not say what is expected"
    sentence = first[len("// expect: "):]
    return "" if sentence in done.stderr else f"does not say '{sentence}':\n" + done.stderr[:4000]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("compiler")
    parser.add_argument("--std", default="c++17")
    args = parser.parse_args()
    files = sorted(HERE.glob("*.cpp"))
    command = [args.compiler, f"-std={args.std}", *FLAGS]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        header = Path(folder) / "tensors.hpp"  # precompiled, which both compilers find beside the name
        subprocess.run([*command, "-x", "c++-header", str(HERE / "tensors.hpp"), "-o", f"{header}.gch"], check=True)
        command += ["-include", str(header)]
        faults = list(pool.map(lambda path: check(command, path), files))
    for path, fault in zip(files, faults):
        print(f"{path.name}: {fault or 'as expected'}")
    failed = sum(map(bool, faults))
    print(f"{len(files) - failed} passed, {failed} failed")
    sys.exit(bool(failed))
