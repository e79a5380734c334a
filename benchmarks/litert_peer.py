"""LiteRT (PyPI: ai-edge-litert) as the peer: what the benchmarks need of it, each call in a process of its own.

    python litert_peer.py contexts MODEL N [--no-delegate]   memory after each of N interpreters, as JSON
    python litert_peer.py serve MODEL [SHAPES] [--no-delegate]   (SHAPES of the inputs, as JSON) times rounds on request: one line "RUNS" in, JSON out
"""

import json
import os
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


def fill(interpreter, seed=0):
    """The same inputs as `oneweight benchmark` and `memory` use are not needed: only time and memory count."""
    import numpy as np

    rng = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        dtype = detail["dtype"]
        if np.issubdtype(dtype, np.floating):
            value = rng.uniform(-1, 1, detail["shape"]).astype(dtype)
        elif dtype == np.bool_:
            value = np.zeros(detail["shape"], dtype)
        elif np.dtype(dtype).itemsize == 1:
            info = np.iinfo(dtype)
            value = rng.integers(info.min, info.max, detail["shape"], dtype, endpoint=True)
        else:
            value = np.zeros(detail["shape"], dtype)
        interpreter.set_tensor(detail["index"], value)


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


def serve(path, delegate, shapes):
    started = time.perf_counter()
    interpreter = open_interpreter(path, delegate, shapes)
    opened = time.perf_counter()
    fill(interpreter)
    interpreter.invoke()
    first = time.perf_counter()
    taken, left = delegated_nodes(interpreter)
    print(json.dumps({"open_ms": (opened - started) * 1e3, "cold_ms": (first - started) * 1e3, "delegated": taken,
                      "not_delegated": left}), flush=True)
    for line in sys.stdin:
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
    elif len(args) in (2, 3) and args[0] == "serve":
        serve(args[1], delegate, json.loads(args[2]) if len(args) == 3 else None)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
