"""LiteRT (PyPI: ai-edge-litert) as the peer: what the benchmarks need of it, each call in a process of its own.

    python litert_peer.py contexts MODEL N [--no-delegate]   memory after each of N interpreters, as JSON
    python litert_peer.py live MODEL                         largest live set in the order of the file, as JSON
    python litert_peer.py serve MODEL FOLDER [SHAPES] [--no-delegate]   times rounds on request: one line in, one line of JSON out.
        "RUNS": times in ms; "compare": how the answers in FOLDER (out_0.npy, ...) differ from the first ones here.
        Inputs are those of the case beside MODEL (in_0.npy, ...) or random; they are left in FOLDER. SHAPES: of the inputs, as JSON.
"""

import json
import os
import pathlib
import sys
import time


def memory():
    """Resident, anonymous and file-backed bytes of this process (/proc/self/smaps_rollup)."""
    values = {}
    with open("/proc/self/smaps_rollup") as f:
        for line in f:
            parts = line.split()
            if len(parts) == 3 and parts[2] == "kB":
                values[parts[0].rstrip(":")] = int(parts[1]) * 1024
    return {"rss_bytes": values["Rss"], "anonymous_bytes": values["Anonymous"],
            "file_backed_bytes": values["Rss"] - values["Anonymous"]}


def open_interpreter(path, delegate, shapes=None):
    """shapes: of the inputs in their order, where the file leaves them open."""
    from ai_edge_litert import interpreter as litert

    resolver = litert.OpResolverType.AUTO if delegate else litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = litert.Interpreter(model_path=path, num_threads=1, experimental_op_resolver_type=resolver)
    for detail, shape in zip(interpreter.get_input_details(), shapes or []):
        interpreter.resize_tensor_input(detail["index"], shape)
    interpreter.allocate_tensors()
    return interpreter


def fill(interpreter, seed=0, case=None, folder=None):
    """Inputs from the files of a case where they fit, else random; written to `folder` as in_0.npy, in_1.npy, ..."""
    import numpy as np

    rng = np.random.default_rng(seed)
    for i, detail in enumerate(interpreter.get_input_details()):
        dtype = detail["dtype"]
        given = np.load(case / f"in_{i}.npy") if case and (case / f"in_{i}.npy").exists() else None
        if given is not None and given.dtype == dtype and list(given.shape) == list(detail["shape"]):
            value = given
        elif np.issubdtype(dtype, np.floating):
            value = rng.uniform(-1, 1, detail["shape"]).astype(dtype)
        elif dtype == np.bool_:
            value = np.zeros(detail["shape"], dtype)
        elif np.dtype(dtype).itemsize == 1:
            info = np.iinfo(dtype)
            value = rng.integers(info.min, info.max, detail["shape"], dtype, endpoint=True)
        else:
            value = np.zeros(detail["shape"], dtype)
        interpreter.set_tensor(detail["index"], value)
        if folder:
            np.save(folder / f"in_{i}.npy", value)


def difference(ours, theirs):
    """The largest distance: of floats as a share of the largest value, of integers in steps."""
    import numpy as np

    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return {"wrong": f"{ours.dtype}{list(ours.shape)} is not {theirs.dtype}{list(theirs.shape)}"}
    if ours.size == 0:
        return {"share": 0.0}
    if np.issubdtype(ours.dtype, np.floating):
        if (np.isnan(ours) != np.isnan(theirs)).any():
            return {"wrong": "NaN at other places"}
        largest = float(np.nanmax(np.abs(theirs), initial=0))
        return {"share": float(np.nanmax(np.abs(ours.astype(float) - theirs), initial=0)) / largest if largest > 0 else float(np.abs(ours).max())}
    return {"steps": int(np.abs(ours.astype(np.int64) - theirs.astype(np.int64)).max())}


def multiply_adds(interpreter):
    """Of one invocation, in the operators that have most of them."""
    shapes = {d["index"]: [int(x) for x in d["shape"]] for d in interpreter.get_tensor_details()}
    total = 0
    for op in interpreter._get_ops_details():
        name, inputs = op["op_name"], [int(i) for i in op["inputs"]]
        if name not in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV") or any(i not in shapes for i in inputs[:2]):
            continue
        weights, out = shapes[inputs[1]], 1
        for extent in shapes[int(op["outputs"][0])]:
            out *= extent
        if name == "CONV_2D":
            total += out * weights[1] * weights[2] * weights[3]
        elif name == "DEPTHWISE_CONV_2D":
            total += out * weights[1] * weights[2]
        elif name == "FULLY_CONNECTED":
            total += out * weights[-1]
        else:
            pixels = 1
            for extent in shapes[inputs[2]]:
                pixels *= extent
            total += pixels * weights[0] * weights[1] * weights[2]
    return total


def delegated_nodes(interpreter):
    """(nodes in the delegate, nodes left to LiteRT's own kernels).

    The interpreter lists replaced nodes too. Walking back from the outputs, tensors that a delegate writes come
    from it; the nodes met besides are those that still run.
    """
    details = interpreter._get_ops_details()
    delegates = [d for d in details if d["op_name"] == "DELEGATE"]
    producer = {int(t): d for d in details if d["op_name"] != "DELEGATE" for t in d["outputs"]}
    producer.update({int(t): d for d in delegates for t in d["outputs"]})
    wanted = [d["index"] for d in interpreter.get_output_details()]
    left, seen = set(), set()
    while wanted:
        t = int(wanted.pop())
        if t in seen or t not in producer:
            continue
        seen.add(t)
        node = producer[t]
        if node["op_name"] != "DELEGATE":
            left.add(node["index"])
        wanted.extend(int(i) for i in node["inputs"])
    total = len(details) - len(delegates)
    return total - len(left), len(left)


def contexts(path, count, delegate):
    import ai_edge_litert.interpreter  # noqa: F401  (its libraries belong to the base)
    import numpy  # noqa: F401

    # Both sides take the base after a tiny model has been run and closed.
    tiny = os.environ.get("ONEWEIGHT_WARM_UP_MODEL")
    if tiny:
        warm = open_interpreter(tiny, delegate)
        fill(warm)
        warm.invoke()
        del warm
    base = memory()
    rows = []
    alive = []
    for _ in range(count):
        interpreter = open_interpreter(path, delegate)
        fill(interpreter)
        interpreter.invoke()
        alive.append(interpreter)
        rows.append(memory())
    taken, left = delegated_nodes(alive[0])
    print(json.dumps({"base_rss_bytes": base["rss_bytes"], "base_anonymous_bytes": base["anonymous_bytes"],
                      "contexts": rows, "delegated": taken, "not_delegated": left}))


def live(path):
    """The largest sum of bytes alive at one operator, in the order of the file: inputs for the whole run, outputs from their writing
    on, others from their writing to their last reading. Constants, and what is computed from constants alone, are not counted."""
    import numpy as np

    interpreter = open_interpreter(path, False)
    interpreter.invoke()  # some shapes are known only then
    details = {d["index"]: d for d in interpreter.get_tensor_details()}
    operators = interpreter._get_ops_details()
    inputs = {d["index"] for d in interpreter.get_input_details()}
    outputs = {d["index"] for d in interpreter.get_output_details()}
    computed, first, last = set(inputs), {}, {}
    for t in inputs:
        first[t], last[t] = 0, len(operators)
    for step, operator in enumerate(operators):
        sources = [t for t in operator["inputs"] if t in computed]
        written = [t for t in operator["outputs"] if t in details]
        if sources or not [t for t in operator["inputs"] if t >= 0]:
            computed.update(written)
            for t in written:
                first[t], last[t] = step, len(operators) if t in outputs else step
        for t in sources:
            last[t] = max(last[t], step)
    def size(t):
        return int(np.prod(details[t]["shape"], dtype=np.int64)) * np.dtype(details[t]["dtype"]).itemsize

    most = max((sum(size(t) for t in first if first[t] <= s <= last[t]) for s in range(len(operators))), default=0)
    print(json.dumps({"live_bytes": most, "tensors": len(details), "input_shapes": [[int(n) for n in details[t]["shape"]] for t in inputs]}))


def serve(path, delegate, folder, shapes):
    import ai_edge_litert.interpreter  # noqa: F401  (loading its libraries is not opening a model)
    import numpy as np

    started = time.perf_counter()
    interpreter = open_interpreter(path, delegate, shapes)
    opened = time.perf_counter()
    fill(interpreter, case=pathlib.Path(path).parent, folder=folder)
    filled = time.perf_counter()
    interpreter.invoke()
    first = time.perf_counter()
    answers = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    taken, left = delegated_nodes(interpreter)
    print(json.dumps({"open_ms": (opened - started) * 1e3, "cold_ms": (first - filled + opened - started) * 1e3, "delegated": taken,
                      "not_delegated": left, "multiply_adds": multiply_adds(interpreter)}), flush=True)
    for line in sys.stdin:
        if line.strip() == "compare":
            files = [folder / f"out_{i}.npy" for i in range(len(answers))]
            print(json.dumps([difference(np.load(f), a) if f.exists() else {"wrong": f"no {f.name}"} for f, a in zip(files, answers)]), flush=True)
            continue
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            interpreter.invoke()
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps(times), flush=True)


def main():
    delegate = "--no-delegate" not in sys.argv
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(args) == 3 and args[0] == "contexts":
        contexts(args[1], int(args[2]), delegate)
    elif len(args) == 2 and args[0] == "live":
        live(args[1])
    elif len(args) in (3, 4) and args[0] == "serve":
        serve(args[1], delegate, pathlib.Path(args[2]), json.loads(args[3]) if len(args) == 4 else None)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
