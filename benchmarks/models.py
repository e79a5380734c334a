"""Latency of models on one thread beside LiteRT + XNNPACK, in alternating rounds of one run.

    python benchmarks/models.py --oneweight build/bin/oneweight MODEL.tflite|FOLDER... [--rounds 7] [--svg FILE]

A folder is searched for model.tflite files. Each round runs oneweight, then LiteRT, for about --round-ms each; the
ratio is LiteRT time / oneweight time of the medians of a round (above 1: oneweight is faster), given as the median
over rounds with its range. How many nodes XNNPACK took is printed: a ratio against LiteRT's own kernels says less.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

import plot

PEER = pathlib.Path(__file__).with_name("litert_peer.py")


def find_models(arguments):
    for argument in arguments:
        path = pathlib.Path(argument)
        if path.is_dir():
            for model in sorted(path.rglob("model.tflite")):
                yield model.parent.name, model
        else:
            yield path.stem, path


class Litert:
    def __init__(self, python, model, shapes):
        command = [python, str(PEER), "serve", str(model)] + ([json.dumps(shapes)] if shapes else [])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        self.about = json.loads(line) if line else None

    def round(self, runs):
        self.process.stdin.write(f"{runs}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def shapes_beside(model):
    """Shapes of the inputs from a case.json beside the model, for models that leave them open."""
    case = model.with_name("case.json")
    return [i["shape"] for i in json.loads(case.read_text())["inputs"]] if case.exists() else None


def oneweight_round(program, model, runs, shapes):
    resize = [f"{i}={','.join(map(str, shape))}" for i, shape in enumerate(shapes or [])]
    command = [program, "benchmark", str(model), "--runs", str(runs), "--json"] + (["--resize", *resize] if resize else [])
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None, (done.stderr or done.stdout).strip().splitlines()[-1:]
    return json.loads(done.stdout.strip().splitlines()[-1]), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--oneweight", default="build/bin/oneweight")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--round-ms", type=float, default=150)
    parser.add_argument("--svg", help="write the plot here")
    args = parser.parse_args()

    print("| model | oneweight ms | LiteRT ms | ratio (range) | open ms | LiteRT open ms | scratch MiB | nodes in XNNPACK |")
    print("|---|---|---|---|---|---|---|---|")
    plotted = []
    for name, model in find_models(args.models):
        shapes = None
        first, error = oneweight_round(args.oneweight, model, 3, shapes)
        if first is None and (shapes := shapes_beside(model)):
            first, error = oneweight_round(args.oneweight, model, 3, shapes)
        if first is None:
            print(f"| {name} | {' '.join(error or ['no output'])} |", flush=True)
            continue
        runs = max(3, min(2000, int(args.round_ms / max(first["median_ms"], 1e-3))))
        peer = Litert(args.peer_python, model, shapes)
        ours, theirs, ratios, opens = [], [], [], []
        for _ in range(args.rounds):
            result, _ = oneweight_round(args.oneweight, model, runs, shapes)
            ours.append(result["median_ms"])
            opens.append(result["open_ms"])
            times = peer.round(runs) if peer.about else None
            if times:
                theirs.append(statistics.median(times))
                ratios.append(theirs[-1] / ours[-1])
        peer.close()
        scratch = first["forecast_bytes"] / 2**20
        if ratios:
            taken = f"{peer.about['delegated']} of {peer.about['delegated'] + peer.about['not_delegated']}"
            middle = statistics.median(ratios)
            plotted.append((name, min(ratios), middle, max(ratios)))
            print(f"| {name} | {statistics.median(ours):.3f} | {statistics.median(theirs):.3f} | {middle:.2f} "
                  f"({min(ratios):.2f}-{max(ratios):.2f}) | {statistics.median(opens):.2f} | {peer.about['open_ms']:.2f} | "
                  f"{scratch:.2f} | {taken} |", flush=True)
        else:
            print(f"| {name} | {statistics.median(ours):.3f} | not measured | | {statistics.median(opens):.2f} | | {scratch:.2f} | |", flush=True)
    if plotted:
        mean = math.exp(statistics.fmean(math.log(p[2]) for p in plotted))
        print(f"\n{len(plotted)} models, geometric mean of the ratios {mean:.2f}, lowest {min(p[2] for p in plotted):.2f}")
        if args.svg:
            plot.ratios(args.svg, plotted, "LiteRT + XNNPACK time / oneweight time, one thread")
            print(f"plot: {args.svg}")


if __name__ == "__main__":
    main()
