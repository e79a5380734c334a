"""Seconds and memory to compile programs that include oneweight, against the bounds the project sets itself.

    python benchmarks/compile_time.py [--compiler g++] [--include FOLDER]... [--check]

Highway, flatbuffers and Eigen are looked for in build/deps/root/usr/include, the compiler's own folders and --include.
One call each, CPU seconds; run it on a quiet machine. --check: exit status 1 when a bound is passed.
"""

import argparse
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent.parent
PROGRAM = ROOT / "examples/minimal/main.cc"
ONE_OPERATOR = ROOT / "tests/package/main.cc"
STATIC = ["-DONEWEIGHT_STATIC_DISPATCH=1", "-march=native"]

# What is compiled, how, and the bounds: CPU seconds, MiB.
ROWS = [("interface only (links oneweight::kernels)", PROGRAM, ["-DONEWEIGHT_EXTERN_KERNELS=1"], 12, 600),
        ("one operator, one processor target", ONE_OPERATOR, ["-DHEADERS_ONLY"] + STATIC, 15, 700),
        ("one operator, all processor targets", ONE_OPERATOR, ["-DHEADERS_ONLY"], 40, 1000),
        ("all operators, one processor target", PROGRAM, STATIC, 150, 2500),
        ("all operators, all processor targets", PROGRAM, [], 400, 5000)]


def compile_once(command):
    """CPU seconds and peak MiB of the compiler and its children."""
    process = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()

    flags = ["-std=c++20", "-O2", f"-I{ROOT / 'include'}", f"-I{ROOT / 'tests/package'}"]
    for folder in args.include + [str(ROOT / "build/deps/root/usr/include")]:
        flags += ["-isystem", folder]
    passed = True
    print("| program | seconds | bound | MiB | bound |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, source, options, seconds_bound, memory_bound in ROWS:
            seconds, memory = compile_once([args.compiler, *flags, *options, "-c", str(source), "-o", f"{folder}/program.o"])
            passed &= seconds <= seconds_bound and memory <= memory_bound
            print(f"| {name} | {seconds:.1f} | {seconds_bound} | {memory:.0f} | {memory_bound} |", flush=True)
    if args.check and not passed:
        sys.exit("a bound is passed")


if __name__ == "__main__":
    main()
