"""The arena of every model beside the largest live set of its file's order, and resident memory beside LiteRT, measured in one run.

    python benchmarks/memory.py --oneweight build/bin/oneweight MODEL.tflite... [--large-image 0.6] [--no-rss]

L: the largest sum of bytes alive at one operator, operators in the order of the file (litert_peer.py live). Ends with an error when an
arena is larger than L + 64 bytes a tensor + the largest scratch of a step, when a convolutional network of 224 pixels or more has no
tiled steps, or when the geometric mean of arena / L over those is above --large-image.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

import contexts

MIB = 1024 * 1024


def peer(python, *command):
    done = subprocess.run([python, str(contexts.PEER), *command], capture_output=True, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--oneweight", default="build/bin/oneweight")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--large-image", type=float, default=0.6, help="bar for the mean of image models of 224 pixels and more")
    parser.add_argument("--no-rss", action="store_true", help="do not measure resident memory")
    args = parser.parse_args()

    faults, ratios, images = [], [], []
    print("| model | arena | L | arena / L | scratch of a step | tiled steps | MiB over base: oneweight | LiteRT, XNNPACK | LiteRT, own kernels |")
    print("|---|---|---|---|---|---|---|---|---|")
    for model in args.models:
        path = pathlib.Path(model)
        name = path.parent.name if path.name == "model.tflite" else path.stem
        ours, error = contexts.run_json([args.oneweight, "memory", model, "--json"])
        live = peer(args.peer_python, "live", model)
        if ours is None or live is None:
            print(f"| {name} | not measured: {' '.join(error or ['LiteRT cannot run it'])} |")
            continue
        arena, limit = ours["forecast_bytes"], live["live_bytes"]
        tiled = sum(chain["steps"] for chain in ours["chains"])
        ratio = arena / max(limit, 1)
        rss = ["", "", ""]
        if not args.no_rss:
            rss[0] = f"{(ours['contexts'][0]['rss_bytes'] - ours['base_rss_bytes']) / MIB:.1f}"
            for i, flags in enumerate(([], ["--no-delegate"])):
                theirs = peer(args.peer_python, "contexts", model, "1", *flags)
                rss[1 + i] = f"{(theirs['contexts'][0]['rss_bytes'] - theirs['base_rss_bytes']) / MIB:.1f}" if theirs else "failed"
        print(f"| {name} | {arena} | {limit} | {ratio:.2f} | {ours['largest_scratch_bytes']} | {tiled} of {len(ours['steps'])} | {' | '.join(rss)} |", flush=True)
        ratios.append(ratio)
        if arena > limit + 64 * live["tensors"] + ours["largest_scratch_bytes"] + ours["state_bytes"]:
            faults.append(f"{name}: the arena of {arena} bytes is larger than the live set of {limit}")
        shapes = [s for s in live["input_shapes"] if len(s) == 4 and min(s[1], s[2]) >= 224]
        if shapes:
            images.append(ratio)
            if tiled == 0:
                faults.append(f"{name}: no step is tiled")
    mean = lambda values: math.exp(sum(math.log(v) for v in values) / len(values)) if values else float("nan")
    print(f"\ngeometric mean of arena / L: {mean(ratios):.3f} over {len(ratios)} models, {mean(images):.3f} over {len(images)} of images of 224 pixels and more")
    if images and mean(images) > args.large_image:
        faults.append(f"the mean over large images is above {args.large_image}")
    for fault in faults:
        print(f"FAULT: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
