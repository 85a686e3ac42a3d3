#!/usr/bin/env python3
"""Merges test files into a few translation units, which compile several times faster: what the files instantiate alike is then compiled once.
merge.py plan FOLDER              prints its test files, each after `alone` or `merged`, and the names of the units that the merged ones make, each after `unit`
merge.py units FILE... -- OUT...  writes the units: the includes of all their files, then each file's rest in a namespace of its own, under its own line numbers"""
import re
import sys
from pathlib import Path

ALONE = re.compile(r"^(namespace \w|\s*#\s*(define|if|undef))", re.M)  # speaks to the preprocessor, or reopens a namespace
UNIT = 90_000  # bytes of source that make a unit worth its headers


def unit(paths):
    includes, rests = {}, []
    for path in paths:
        lines = path.read_text().splitlines()
        start = 1 + max(i for i, line in enumerate(lines) if line.startswith("#include"))
        for line in lines[:start]:
            if line.startswith("#include"):
                includes[re.sub('"(.*)"', lambda name: f'"{(path.parent / name[1]).resolve()}"', line)] = None
        rests += [f"namespace {path.stem} {{", f'#line {start + 1} "{path}"', *lines[start:], "}"]
    return "\n".join([*includes, *rests, ""])


if __name__ == "__main__":
    command, *names = sys.argv[1:]
    if command == "plan":
        folder, size = Path(names[0]), 0
        for path in sorted(folder.glob("*_test.cpp")):
            text = path.read_text()
            alone = bool(ALONE.search(text))
            size += 0 if alone else len(text)
            print("alone" if alone else "merged", path)
        for i in range((size + UNIT - 1) // UNIT):
            print(f"unit {folder.name}_tests_{i + 1}.cpp")
    else:
        sources = sorted(map(Path, names[: names.index("--")]), key=lambda path: -path.stat().st_size)
        outputs = names[names.index("--") + 1 :]
        for i, output in enumerate(outputs):
            Path(output).write_text(unit(sources[i :: len(outputs)]))
