#!/usr/bin/env python3
"""Compares Spillway's speed with llama.cpp's (the peer) on one model, in turns, on this machine.

Each round runs both, every run in a process of its own that loads the model, warms up and then times a prefill of
-p tokens and a decode of -n tokens; odd rounds run Spillway first, even rounds the peer. Printed: the values of each
round, each side's median with its least and greatest value, and the ratio of the medians (above 1: Spillway is faster).

The peer runs as llama-bench would run it, with its own defaults: F16 KV, flash attention and repacking of weights as
it chooses, a batch of 2048 in pieces of 512, one thread pool for the run, decode from an empty context, the whole
prompt once as warm-up. Loading is not timed. Compare only on a quiet machine: both sides' threads wait for each
other by spinning, so one busy core elsewhere can cost either a factor. The last columns show that load.

The peer is the prebuilt library of an npm package, driven through ctypes; nothing of it is part of Spillway. Relied on
and therefore checked: the build named in PEER_BUILDS, whose C structs have the sizes in SIZES. They are passed as
opaque bytes that the library itself filled; the only fields written are the first three of llama_context_params
(n_ctx, n_batch, n_ubatch, each a uint32).
"""
import argparse, ctypes as C, json, os, pathlib, random, resource, statistics, subprocess, sys, time

PACKAGE = "@node-llama-cpp/linux-x64@3.22.1"  # the part of node-llama-cpp 3.22.1 that holds the libraries
PEER_BUILDS = {("0.5.0-dev", "0.25.1"): "llama.cpp v0.5.0"}  # (llama_version(), ggml_version())
SIZES = dict(model_params=80, context_params=160, batch=56, threadpool_params=528)
DEFAULT_DIR = "~/.cache/spillway/peer/node_modules"


class NoPeer(Exception):
    pass


def how_to_install():
    return (f"to install the part used here: npm install --prefix ~/.cache/spillway/peer {PACKAGE}\n"
            "or the whole package: npm install --prefix ~/.cache/spillway/peer node-llama-cpp@3.22.1\n"
            "or set SPILLWAY_PEER_LIB to the folder that holds libllama*.so and libggml*.so")


def find_library(peer_dir):
    """The path of libllama; SPILLWAY_PEER_LIB (that file, or its folder) goes before the npm folder."""
    named = os.environ.get("SPILLWAY_PEER_LIB")
    if named and pathlib.Path(named).is_file():
        return pathlib.Path(named).resolve()
    folder = pathlib.Path(named or peer_dir).expanduser()
    pattern = "libllama.*so*" if named else "@node-llama-cpp/linux-x64/bins/*/libllama.*so*"
    found = sorted(folder.glob(pattern))
    if not found:
        raise NoPeer(f"no libllama under {folder}")
    return found[-1].resolve()


class Peer:
    """The few functions of libllama and libggml that a measurement needs."""

    def __init__(self, library):
        try:
            self.lib = C.CDLL(str(library), mode=C.RTLD_GLOBAL)
            build = tuple(self.call(f, C.c_char_p).decode() for f in ("llama_version", "ggml_version"))
        except (OSError, AttributeError) as e:
            raise NoPeer(f"{library} cannot be used: {e}") from None
        if build not in PEER_BUILDS:
            raise NoPeer(f"{library} is llama {build[0]} with ggml {build[1]}; this script knows only "
                         + ", ".join(f"{n} (llama {b[0]} with ggml {b[1]})" for b, n in PEER_BUILDS.items()))
        self.name = PEER_BUILDS[build]
        self.struct = {n: type(n, (C.Structure,), {"_fields_": [("words", C.c_uint64 * (size // 8))]})
                       for n, size in SIZES.items()}
        self.folder = str(library.parent).encode()

    def call(self, name, result, *args):
        f = getattr(self.lib, name)
        f.restype = result
        return f(*args)

    def start(self):
        quiet = C.CFUNCTYPE(None, C.c_int, C.c_char_p, C.c_void_p)
        self.log = quiet(lambda level, text, _: level == 4 and sys.stderr.write(text.decode(errors="replace")))  # errors
        self.call("llama_log_set", None, self.log, None)
        self.call("ggml_backend_load_all_from_path", None, C.c_char_p(self.folder))
        self.call("llama_backend_init", None)

    def measure(self, model, n_prompt, n_gen, threads):
        s, vp = self.struct, C.c_void_p
        began = time.perf_counter()
        m = self.call("llama_model_load_from_file", vp, C.c_char_p(os.fsencode(model)),
                      self.call("llama_model_default_params", s["model_params"]))
        if not m:
            raise RuntimeError(f"the peer cannot load {model}")
        load_s = time.perf_counter() - began
        n_vocab = self.call("llama_vocab_n_tokens", C.c_int32, vp(self.call("llama_model_get_vocab", vp, vp(m))))
        params = self.call("llama_context_default_params", s["context_params"])
        first = C.cast(C.byref(params), C.POINTER(C.c_uint32))
        first[0], first[1], first[2] = max(n_prompt, n_gen), 2048, 512
        ctx = vp(self.call("llama_init_from_model", vp, vp(m), params))
        if not ctx:
            raise RuntimeError("the peer cannot make a context")
        self.call("llama_set_n_threads", None, ctx, C.c_int32(threads), C.c_int32(threads))
        cpu = self.call("ggml_backend_dev_backend_reg", vp, vp(self.call("ggml_backend_dev_by_type", vp, C.c_int(0))))
        new_pool = self.call("ggml_backend_reg_get_proc_address", vp, vp(cpu), C.c_char_p(b"ggml_threadpool_new"))
        pool_params = self.call("ggml_threadpool_params_default", s["threadpool_params"], C.c_int(threads))
        pool = C.CFUNCTYPE(vp, vp)(new_pool)(C.addressof(pool_params))
        self.call("llama_attach_threadpool", None, ctx, vp(pool), None)
        memory = vp(self.call("llama_get_memory", vp, ctx))
        ids = (C.c_int32 * max(n_prompt, n_gen))(*(random.randrange(n_vocab) for _ in range(max(n_prompt, n_gen))))

        def decode(at, count):
            at = C.cast(C.byref(ids, 4 * at), C.POINTER(C.c_int32))
            if self.call("llama_decode", C.c_int32, ctx, self.call("llama_batch_get_one", s["batch"], at, C.c_int32(count))):
                raise RuntimeError("llama_decode failed")
            self.call("llama_synchronize", None, ctx)

        def prefill():
            self.call("llama_memory_clear", None, memory, C.c_bool(False))
            began = time.perf_counter()
            for at in range(0, n_prompt, 2048):
                decode(at, min(2048, n_prompt - at))
            return n_prompt / (time.perf_counter() - began)

        def generate(count):
            self.call("llama_memory_clear", None, memory, C.c_bool(False))
            began = time.perf_counter()
            for at in range(count):
                decode(at, 1)
            return count / (time.perf_counter() - began)

        prefill(), generate(1)  # warm-up
        return {"prefill": prefill(), "decode": generate(n_gen), "load_s": load_s}


def spillway_values(report):
    """prefill and decode tok/s from the JSON that `spillway bench --json` prints."""
    return {k: statistics.median(report[k]["tok_s"]) for k in ("prefill", "decode")}


def run_json(command, env=None):
    """Runs a command; its last line that is a JSON object, and the cores that others kept busy meanwhile."""
    ticks = os.sysconf("SC_CLK_TCK")

    def busy():  # seconds of processor time used by all: user, nice, system, irq, softirq, steal
        v = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
        return (sum(v) - v[3] - v[4]) / ticks

    def own():
        r = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(x.ru_utime + x.ru_stime for x in r)

    t0, b0, o0 = time.monotonic(), busy(), own()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=env)
    others = max(0.0, (busy() - b0 - own() + o0) / (time.monotonic() - t0))
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode} from: {' '.join(map(str, command))}")
    try:  # the whole output, or else its last line with an object on it
        return json.loads(done.stdout), others
    except ValueError:
        lines = [x for x in done.stdout.splitlines() if x.lstrip().startswith("{")]
        if not lines:
            raise RuntimeError(f"no JSON from: {' '.join(map(str, command))}") from None
        return json.loads(lines[-1]), others


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("-m", "--model", required=True)
    ap.add_argument("-p", type=int, default=512, help="prompt tokens (default 512)")
    ap.add_argument("-n", type=int, default=128, help="decoded tokens (default 128)")
    ap.add_argument("-t", type=int, default=2, help="threads (default 2)")
    ap.add_argument("-r", "--rounds", type=int, default=5)
    ap.add_argument("--spillway", default="build/release/spillway", help="the program (default build/release/spillway)")
    ap.add_argument("--spillway-args", default="", help="more options for `spillway bench`, in one string")
    ap.add_argument("--peer-dir", default=DEFAULT_DIR, help=f"npm's node_modules with the peer (default {DEFAULT_DIR})")
    ap.add_argument("--peer-only", action="store_true", help="measure the peer alone")
    ap.add_argument("--json", action="store_true", help="print all values as one line of JSON at the end")
    ap.add_argument("--peer-child", action="store_true", help=argparse.SUPPRESS)
    a = ap.parse_args()
    if min(a.p, a.n, a.t, a.rounds) < 1 or not os.path.isfile(a.model):
        ap.error("-p, -n, -t and -r are 1 or more, and the model is a file")
    try:
        library = find_library(a.peer_dir)
        peer = Peer(library)
    except NoPeer as e:
        print(f"bench_peer: no peer to compare with: {e}\n{how_to_install()}", file=sys.stderr)
        return 2
    if a.peer_child:
        peer.start()
        print(json.dumps(peer.measure(a.model, a.p, a.n, a.t)), flush=True)
        os._exit(0)  # the process ends here: no need to free a model piece by piece

    shared = ["-m", a.model, "-p", str(a.p), "-n", str(a.n), "-t", str(a.t), "-r", "1"]
    env = dict(os.environ, SPILLWAY_PEER_LIB=str(library))

    def one(side):
        if side == "peer":
            return run_json([sys.executable, os.path.abspath(__file__), *shared, "--peer-child"], env)
        report, others = run_json([a.spillway, "bench", *shared, "--json", *a.spillway_args.split()])
        return spillway_values(report), others

    sides = ["peer"] if a.peer_only else ["spillway", "peer"]
    if not a.peer_only and not os.access(a.spillway, os.X_OK):
        ap.error(f"no program at {a.spillway}; build it, or name it with --spillway")
    print(f"model {a.model}, prefill {a.p}, decode {a.n}, threads {a.t}, peer {peer.name}")
    print("round  " + "".join(f"{s + ' prefill':>18}{s + ' decode':>17}{'others':>9}" for s in sides) + "   (tok/s; cores busy elsewhere)")
    rounds = []
    for i in range(a.rounds):
        got = {s: one(s) for s in (sides if i % 2 == 0 else sides[::-1])}
        rounds.append({s: dict(v, others=o) for s, (v, o) in got.items()})
        print(f"{i + 1:<7}" + "".join(f"{rounds[-1][s]['prefill']:>18.2f}{rounds[-1][s]['decode']:>17.2f}{rounds[-1][s]['others']:>9.2f}" for s in sides), flush=True)
    ratios = {}
    for kind in ("prefill", "decode"):
        med = {}
        for s in sides:
            v = [r[s][kind] for r in rounds]
            med[s] = statistics.median(v)
            print(f"{kind:<8} {s:<9} median {med[s]:.2f} tok/s (min {min(v):.2f}, max {max(v):.2f})")
        if len(sides) == 2:
            each = [r["spillway"][kind] / r["peer"][kind] for r in rounds]
            ratios[kind] = med["spillway"] / med["peer"]
            print(f"{kind:<8} ratio     {ratios[kind]:.3f} of the medians, spillway/peer (rounds: min {min(each):.3f}, max {max(each):.3f})")
    if max(r[s]["others"] for r in rounds for s in sides) > 0.2:
        print("note: others kept the processor busy in at least one run; the values there say little", file=sys.stderr)
    if a.json:
        print(json.dumps({"model": a.model, "peer": peer.name, "p": a.p, "n": a.n, "threads": a.t, "rounds": rounds, "ratio": ratios}))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as e:
        sys.exit(f"bench_peer: {e}")
