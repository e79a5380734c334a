"""Memory of one to N contexts of one model, beside as many LiteRT interpreters, measured in one run.

    python benchmarks/contexts.py --oneweight build/bin/oneweight MODEL.tflite... [--contexts 9] [--svg FILE]

Prints a table (MiB of resident memory over each program's base; anonymous memory at the last context) and
draws the plot. LiteRT is taken from the interpreter that runs this script (pip install ai-edge-litert) or from
--peer-python; without it the table has oneweight's rows only.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import plot

MIB = 1024 * 1024
PEER = pathlib.Path(__file__).with_name("litert_peer.py")
WARM_UP = pathlib.Path(__file__).parent.parent / "tests/data/models/mlperf_kws_int8/model.tflite"


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "ONEWEIGHT_WARM_UP_MODEL": str(WARM_UP)})
    if done.returncode != 0:
        return None, (done.stderr or done.stdout).strip().splitlines()[-1:]
    return json.loads(done.stdout.strip().splitlines()[-1]), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--oneweight", default="build/bin/oneweight")
    parser.add_argument("--contexts", type=int, default=9)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--svg", help="write the plot here")
    args = parser.parse_args()

    series = []
    print(f"| model | runtime | {' | '.join(str(i + 1) for i in range(args.contexts))} | anonymous at {args.contexts} |")
    print("|---" * (args.contexts + 3) + "|")
    for number, model in enumerate(args.models):
        name = pathlib.Path(model).stem
        size = os.path.getsize(model)
        rows = [("oneweight", "", [args.oneweight, "memory", model, "--contexts", str(args.contexts), "--json"]),
                ("LiteRT, XNNPACK", "6 3", [args.peer_python, str(PEER), "contexts", model, str(args.contexts)]),
                ("LiteRT, own kernels", "2 3", [args.peer_python, str(PEER), "contexts", model, str(args.contexts), "--no-delegate"])]
        for runtime, dashes, command in rows:
            result, error = run_json(command)
            if result is None:
                print(f"| {name} | {runtime} | not measured: {' '.join(error or ['no output'])} |")
                continue
            points = [(c["rss_bytes"] - result["base_rss_bytes"]) / MIB for c in result["contexts"]]
            anonymous = (result["contexts"][-1]["anonymous_bytes"] - result["base_anonymous_bytes"]) / MIB
            print(f"| {name} ({size / MIB:.1f} MiB) | {runtime} | {' | '.join(f'{p:.1f}' for p in points)} | {anonymous:.1f} |", flush=True)
            series.append((f"{name}, {runtime}", points, number, dashes))
    if args.svg and series:
        plot.lines(args.svg, series, "contexts of one model", "MiB of resident memory over base")
        print(f"\nplot: {args.svg}")


if __name__ == "__main__":
    main()
