"""What the black-box tests of the program share. The environment names the programs, SPILLWAY and MAKE_MODEL,
and how long one call may take: SPILLWAY_SECONDS."""
import array, atexit, os, pathlib, shutil, subprocess, tempfile, unittest

from gguf_file import Gguf

SPILLWAY, MAKE_MODEL = os.environ["SPILLWAY"], os.environ["MAKE_MODEL"]
SECONDS = int(os.environ.get("SPILLWAY_SECONDS", 120))  # what may take longer hangs
FOLDER = tempfile.mkdtemp(prefix="spillway-cli-")
os.environ["XDG_DATA_HOME"] = FOLDER + "/data"  # no hardware profile of whoever runs the tests
atexit.register(shutil.rmtree, FOLDER, True)
made = {}


def make(flags=""):
    """Path of a random model with these flags of make_model; the same for the same flags."""
    if flags not in made:
        path = f"{FOLDER}/made-{len(made)}.gguf"
        subprocess.run([MAKE_MODEL, *flags.split(), "--out", path], check=True)
        made[flags] = path
    return made[flags]


class Case(unittest.TestCase):
    counter = 0

    def new_path(self, suffix=".gguf"):
        Case.counter += 1
        return f"{FOLDER}/{Case.counter}{suffix}"

    def written(self, model, **how):
        path = self.new_path()
        if isinstance(model, bytes):
            pathlib.Path(path).write_bytes(model)
        else:
            model.write(path, **how)
        return path

    def call(self, *arguments, input="", timeout=SECONDS, **more):
        done = subprocess.run([SPILLWAY, *map(str, arguments)], input=input.encode() if isinstance(input, str) else input,
                              capture_output=True, timeout=timeout, **more)
        done.out, done.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        self.assertGreaterEqual(done.returncode, 0, f"ended by signal {-done.returncode}: {arguments}\n{done.err}")
        return done

    def works(self, *arguments, **more):
        done = self.call(*arguments, **more)
        self.assertEqual(done.returncode, 0, f"{arguments}\n{done.err}")
        return done

    def fails(self, words, *arguments, code=1, **more):
        """Exit code 1 and one message that holds all of the words."""
        done = self.call(*arguments, **more)
        self.assertEqual(done.returncode, code, f"{arguments}\nout: {done.out[-500:]}\nerr: {done.err}")
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, done.err, arguments)
        return done

    def refused(self, words, model, **how):
        """No command takes the file, and each says why."""
        path = model if isinstance(model, str) else self.written(model, **how)
        self.fails(words, "inspect", "-m", path)
        out = self.new_path(".f32")
        self.fails(words, "logits", "-m", path, "--tokens", "1,2", "-o", out)
        self.assertFalse(os.path.exists(out))
        return self.fails(words, "run", "-m", path, "--no-chat", "-p", "hi", "-n", "1")

    def logits(self, path, tokens, *flags):
        """Rows of floats, one for each token."""
        out = self.new_path(".f32")
        self.works("logits", "-m", path, "--tokens", ",".join(map(str, tokens)), "-o", out, "-t", "1", *flags)
        values = array.array("f", pathlib.Path(out).read_bytes())
        width = len(values) // len(tokens)
        return [values[i * width:(i + 1) * width] for i in range(len(tokens))]


def model(flags=""):
    """A model to be changed."""
    return Gguf.read(make(flags))
