"""Latency of models on one thread beside LiteRT + XNNPACK, in alternating rounds of one run.

    python benchmarks/models.py --oneweight build/release/bin/oneweight MODEL.tflite|FOLDER... [--rounds 15] [--bar 0.9] [--svg FILE]

A folder is searched for model.tflite files. Both sides get the same inputs (those of the case beside the model, or random ones), and
their answers are compared first: the largest difference, of floats as a share of the largest value, of integers in steps. Each round
runs oneweight, then LiteRT, for about --round-ms each. The ratio is LiteRT time / oneweight time of the medians of a round (above 1:
oneweight is faster), given as the median over rounds with its 95 % confidence interval (order statistics); with --bar, rounds go on
(three times as many at most) while the interval holds the bar. How many nodes XNNPACK took is printed: a ratio against LiteRT's own
kernels says less. LiteRT is called from Python, which takes about half a microsecond: models of a few microseconds gain by it.
G/s are multiply-adds of convolutions and dense layers; --peak PROGRAM prints what this machine can do, measured in the same run.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import plot

PEER = pathlib.Path(__file__).with_name("litert_peer.py")
KINDS = {"f32": "float32", "float": "float32", "f16": "float16 weights", "int8": "int8", "8bit": "int8", "dr": "dynamic range",
         "hybrid": "dynamic range", "uint8": "uint8"}


def find_models(arguments):
    for argument in arguments:
        path = pathlib.Path(argument)
        if path.is_dir():
            for model in sorted(path.rglob("model.tflite")):
                yield model.parent.name, model
        else:
            yield path.stem, path


class Litert:
    """The peer in a process of its own. `about` is None where it does not start or does not take the model."""

    def __init__(self, python, model, folder, shapes):
        command = [python, str(PEER), "serve", str(model), str(folder)] + ([json.dumps(shapes)] if shapes else [])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.about = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def ask(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Oneweight:
    def __init__(self, program, model, shapes, folder):
        files = sorted(folder.glob("in_*.npy"), key=lambda f: int(f.stem[3:]))
        self.model = [str(model)] + [x for f in files for x in ("-i", str(f))]
        if shapes:
            self.model += ["--resize"] + [f"{i}={','.join(map(str, shape))}" for i, shape in enumerate(shapes)]
        self.program = program
        self.error = ""

    def call(self, command, *options):
        done = subprocess.run([self.program, command, *self.model, *options], capture_output=True, text=True)
        if done.returncode != 0:
            self.error = ((done.stderr or done.stdout).strip().splitlines() or ["no output"])[-1]
            return None
        return done.stdout

    def round(self, runs):
        output = self.call("benchmark", "--runs", str(runs), "--json")
        return json.loads(output.strip().splitlines()[-1]) if output else None


def shapes_beside(model):
    """Shapes of the inputs from a case.json beside the model, for models that leave them open."""
    case = model.with_name("case.json")
    return [i["shape"] for i in json.loads(case.read_text())["inputs"]] if case.exists() else None


def interval(ratios):
    """The 95 % confidence interval of the median, without assumptions: order statistics by the binomial distribution."""
    ordered, n = sorted(ratios), len(ratios)
    below, k = 0.0, 0
    while k < n // 2 and below + math.comb(n, k) / 2**n <= 0.025:
        below += math.comb(n, k) / 2**n
        k += 1
    return ordered[max(k - 1, 0)], ordered[n - 1 - max(k - 1, 0)]


def describe(differences):
    wrong = [d["wrong"] for d in differences if "wrong" in d]
    if wrong:
        return wrong[0]
    words = []
    if any("share" in d for d in differences):
        words.append(f"{max(d.get('share', 0) for d in differences):.0e}")
    if any("steps" in d for d in differences):
        words.append(f"{max(d.get('steps', 0) for d in differences)} steps")
    return ", ".join(words)


def kind_of(name):
    return next((KINDS[part] for part in reversed(name.split("_")) if part in KINDS), "other")


def measure(args, name, model):
    """Prints a row; (name, low, middle, high) where both sides ran."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        shapes = None
        if Oneweight(args.oneweight, model, None, folder).round(1) is None:
            shapes = shapes_beside(model)
        peer = Litert(args.peer_python, model, folder, shapes)
        ours = Oneweight(args.oneweight, model, shapes, folder)
        first = ours.round(3)
        if first is None:
            print(f"| {name} | {ours.error} |", flush=True)
            peer.close()
            return None
        answers = ""
        if peer.about:
            ours.call("run", "-o", str(folder))
            answers = describe(peer.ask("compare"))
        runs = max(3, min(2000, int(args.round_ms / max(first["median_ms"], 1e-3))))
        rounds, times, ratios = [], [], []
        most = args.rounds * (3 if args.bar else 1)
        while len(rounds) < most:
            rounds.append(ours.round(runs))
            if peer.about:
                times.append(statistics.median(peer.ask(runs)))
                ratios.append(times[-1] / rounds[-1]["median_ms"])
            if len(rounds) >= args.rounds:
                if not ratios:
                    break
                low, high = interval(ratios)
                if not args.bar or not low < args.bar < high:
                    break
        peer.close()
    ms = statistics.median(r["median_ms"] for r in rounds)
    opened = statistics.median(r["open_ms"] for r in rounds)
    cold = statistics.median(r["cold_ms"] for r in rounds)
    scratch = first["forecast_bytes"] / 2**20
    if not ratios:
        print(f"| {name} | {ms:.3f} | not measured | | | {opened:.2f} | | {cold:.2f} | {scratch:.2f} | | |", flush=True)
        return None
    about = peer.about
    low, high = interval(ratios)
    middle = statistics.median(ratios)
    print(f"| {name} | {ms:.3f} | {statistics.median(times):.3f} | {middle:.2f} ({low:.2f}-{high:.2f}) | {about['multiply_adds'] / ms / 1e6:.1f} | "
          f"{opened:.2f} | {about['open_ms']:.2f} | {cold:.2f} | {scratch:.2f} | {about['delegated']} of {about['delegated'] + about['not_delegated']} | "
          f"{answers} |", flush=True)
    return name, low, middle, high


def mean(ratios):
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--oneweight", default="build/release/bin/oneweight")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--round-ms", type=float, default=150)
    parser.add_argument("--bar", type=float, help="a ratio that is to be told from: more rounds while the interval holds it")
    parser.add_argument("--peak", help="the program of benchmarks/peak.cc")
    parser.add_argument("--svg", help="write the plot here")
    args = parser.parse_args()

    if args.peak:
        print(subprocess.run([args.peak], capture_output=True, text=True, check=True).stdout)
    print("| model | oneweight ms | LiteRT ms | ratio (95 %) | G/s | open ms | LiteRT open ms | first answer ms | scratch MiB | nodes in XNNPACK | difference |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    rows = [row for name, model in find_models(args.models) if (row := measure(args, name, model))]
    if not rows:
        return
    print(f"\n{len(rows)} models, geometric mean of the ratios {mean([r[2] for r in rows]):.2f}, lowest {min(r[2] for r in rows):.2f}")
    for kind in sorted({kind_of(r[0]) for r in rows}):
        ratios = [r[2] for r in rows if kind_of(r[0]) == kind]
        print(f"  {kind}: {mean(ratios):.2f} ({len(ratios)} models)")
    if args.svg:
        plot.ratios(args.svg, rows, "LiteRT + XNNPACK time / oneweight time, one thread")
        print(f"plot: {args.svg}")


if __name__ == "__main__":
    main()
