#!/usr/bin/env python3
"""usage: headers_alone.py JOBS COMPILER FLAG...: whether each header compiles when it is the only one that a file includes.

Little is read twice: a few headers that many include are precompiled, and a header is compiled on top of the largest of those that it includes whatever is defined. It may use what that one brings along in
any case, so a header that lacks an include of its own is found as well as by compiling it alone, in a fraction of the time.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DIRECTIVE = re.compile(r"^\s*#\s*(if|endif|include)\w*\s*(?:<weft/([^>]+)>)?", re.M)
STANDARD = 100_000  # what reading a header of the standard library costs, in characters of ours


def own_includes(text):
    """The headers of the library that a header includes outside of conditions, its guard aside."""
    depth, found = 0, []
    for word, header in DIRECTIVE.findall(text):
        depth += {"if": 1, "endif": -1}.get(word, 0)
        if word == "include" and header and depth == 1:
            found.append(header)
    return found


class Headers:
    def __init__(self, root):
        text = {path.relative_to(root).as_posix(): path.read_text() for path in sorted(root.rglob("*.hpp"))}
        self.includes = {header: own_includes(body) for header, body in text.items()}
        self.size = {header: len(body) for header, body in text.items()}
        self.reached = {}

    def closure(self, header):
        if header not in self.reached:
            self.reached[header] = {header}.union(*(self.closure(other) for other in self.includes[header]))
        return self.reached[header]

    def cost(self, header):
        return STANDARD + sum(self.size[other] for other in self.closure(header))

    def base(self, header, precompiled):
        """The largest precompiled header that this one includes, or None."""
        return max((other for other in precompiled if other in self.closure(header)), key=self.cost, default=None)

    def worth_precompiling(self):
        """One after the other the header whose precompiled form saves the most, while that is more than it costs."""
        chosen, saved = [], dict.fromkeys(self.includes, 0)
        while True:
            def gain(hub):
                return sum(max(0, self.cost(hub) - saved[header]) for header in self.includes if hub in self.closure(header)) - 3 * self.cost(hub)

            best = max(self.includes, key=gain)
            if gain(best) <= 0:
                return chosen
            chosen.append(best)
            for header in self.includes:
                if best in self.closure(header):
                    saved[header] = max(saved[header], self.cost(best))


def main(jobs, command):
    headers = Headers(Path("include/weft"))
    precompiled = headers.worth_precompiling()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        def beside(header):
            return f"{folder}/{header.replace('/', '.')}"

        def run(*arguments):
            return subprocess.run([*command, "-Iinclude", *arguments], capture_output=True, text=True)

        def precompile(header):
            Path(beside(header)).write_text(f"#include <weft/{header}>\n")
            return run("-x", "c++-header", beside(header), "-o", beside(header) + ".gch")

        def compile_alone(header):
            base = headers.base(header, precompiled)
            return run("-fsyntax-only", *(["-include", beside(base)] if base else []), "-include", f"weft/{header}", "-x", "c++", os.devnull)

        failed = 0
        for work, names in ((precompile, precompiled), (compile_alone, [header for header in headers.includes if header not in precompiled])):
            for header, result in zip(names, pool.map(work, names)):
                if result.returncode:
                    failed += 1
                    print(f"{header} does not compile alone:\n{result.stdout}{result.stderr}")
        return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]) != 0)
