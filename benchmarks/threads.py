"""What a second thread gives one run, beside what a second process gives two.

    python benchmarks/threads.py --oneweight build/release/bin/oneweight MODEL.tflite|FOLDER... [--rounds 5]

In each round: one thread alone, two threads in one run, and two processes of one thread each at the same time. Printed are the
medians over rounds of both gains, and how much of the processes' gain the threads have.
"""

import argparse
import json
import statistics
import subprocess

from models import find_models


def start(program, model, *options):
    return subprocess.Popen([program, "benchmark", str(model), "--json", *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def median_ms(process):
    output = process.communicate()[0]
    return json.loads(output)["median_ms"] if process.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--oneweight", default="build/release/bin/oneweight")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--round-ms", type=float, default=400)
    args = parser.parse_args()
    print("| model | one thread ms | two threads | two processes | share of the gain |\n|---|---|---|---|---|")
    for name, model in find_models(args.models):
        first = median_ms(start(args.oneweight, model, "--runs", "3"))
        if first is None:
            print(f"| {name} | not run |", flush=True)
            continue
        runs = str(max(3, min(20000, int(args.round_ms / max(first, 1e-3)))))
        alone, threads, processes = [], [], []
        for _ in range(args.rounds):
            alone.append(median_ms(start(args.oneweight, model, "--runs", runs)))
            threads.append(alone[-1] / median_ms(start(args.oneweight, model, "--runs", runs, "--threads", "2")))
            both = [start(args.oneweight, model, "--runs", runs) for _ in range(2)]
            processes.append(2 * alone[-1] / statistics.fmean([median_ms(p) for p in both]))
        two, apart = statistics.median(threads), statistics.median(processes)
        print(f"| {name} | {statistics.median(alone):.3f} | {two:.2f} | {apart:.2f} | {two / apart:.2f} |", flush=True)


if __name__ == "__main__":
    main()
