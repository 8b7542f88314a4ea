"""A GGUF file as Python values, to be damaged and written again. Standard library only; independent of src/gguf."""
import copy, pathlib, struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
# block length and bytes, by the format's type id: F32, F16, Q8_0, Q4_K, Q6_K, MXFP4
BLOCKS = {0: (1, 4), 1: (1, 2), 8: (32, 34), 12: (256, 144), 14: (256, 210), 39: (32, 17)}


class Tensor:
    def __init__(self, name, dims, type_id, data):
        self.name, self.dims, self.type_id, self.data = name, list(dims), type_id, data
        # What the header says, where it is to differ from the truth.
        self.n_dims = self.offset = None


class Gguf:
    def __init__(self):
        self.version, self.kv, self.tensors = 3, {}, []

    def copy(self):
        return copy.deepcopy(self)

    def tensor(self, name):
        return next(t for t in self.tensors if t.name == name)

    def set(self, key, type_id, value):
        self.kv[key] = (type_id, value)

    @staticmethod
    def read(path):
        data, at, g = pathlib.Path(path).read_bytes(), 4, Gguf()

        def take(form):
            nonlocal at
            value = struct.unpack_from("<" + form, data, at)[0]
            at += struct.calcsize("<" + form)
            return value

        def text():
            nonlocal at
            n = take("Q")
            at += n
            return data[at - n:at]

        def value(type_id):
            if type_id == STR:
                return text()
            if type_id == ARR:
                element = take("I")
                return element, [value(element) for _ in range(take("Q"))]
            return take(FORMATS[type_id])

        g.version = take("I")
        n_tensors, n_kv = take("Q"), take("Q")
        for _ in range(n_kv):
            key = text().decode()
            type_id = take("I")
            g.kv[key] = (type_id, value(type_id))
        infos = []
        for _ in range(n_tensors):
            name = text().decode()
            dims = [take("Q") for _ in range(take("I"))]
            infos.append((name, dims, take("I"), take("Q")))
        align = g.kv.get("general.alignment", (U32, 32))[1]
        start = (at + align - 1) // align * align
        for name, dims, type_id, offset in infos:
            length, size = BLOCKS[type_id]
            count = 1
            for d in dims:
                count *= d
            g.tensors.append(Tensor(name, dims, type_id, data[start + offset:start + offset + count // length * size]))
        return g

    def to_bytes(self, pad_last=True, order="<"):
        def text(value):
            value = value.encode() if isinstance(value, str) else value
            return struct.pack(order + "Q", len(value)) + value

        def value(type_id, v):
            if type_id == STR:
                return text(v)
            if type_id == ARR:
                element, items = v[:2]
                count = v[2] if len(v) > 2 else len(items)  # a third item lies about the count
                return struct.pack(order + "IQ", element, count) + b"".join(value(element, i) for i in items)
            return struct.pack(order + FORMATS[type_id], v)

        out = b"GGUF" + struct.pack(order + "IQQ", self.version, len(self.tensors), len(self.kv))
        for key, (type_id, v) in self.kv.items():
            out += text(key) + struct.pack(order + "I", type_id) + value(type_id, v)
        align = self.kv.get("general.alignment", (U32, 32))[1]
        if not isinstance(align, int) or align <= 0:
            align = 32
        up = lambda n: (n + align - 1) // align * align
        offset, body = 0, b""
        for i, t in enumerate(self.tensors):
            out += text(t.name) + struct.pack(order + "I", len(t.dims) if t.n_dims is None else t.n_dims)
            out += b"".join(struct.pack(order + "Q", d) for d in t.dims)
            out += struct.pack(order + "IQ", t.type_id, offset if t.offset is None else t.offset)
            body += t.data
            if pad_last or i + 1 < len(self.tensors):
                body += bytes(up(len(body)) - len(body))
            offset = up(len(body))
        if self.tensors:
            out += bytes(up(len(out)) - len(out))
        return out + body

    def write(self, path, **how):
        pathlib.Path(path).write_bytes(self.to_bytes(**how))

    def write_shards(self, prefix, shard_of, count):
        """shard_of(tensor name) -> 0..count-1; the names are PREFIX-00001-of-0000N.gguf."""
        paths = []
        for shard in range(count):
            g = Gguf()
            if shard == 0:
                g.kv = dict(self.kv)
            g.set("split.no", U16, shard)
            g.set("split.count", U16, count)
            g.set("split.tensors.count", I32, len(self.tensors))
            g.tensors = [t for t in self.tensors if shard_of(t.name) == shard]
            paths.append(f"{prefix}-{shard + 1:05}-of-{count:05}.gguf")
            g.write(paths[-1])
        return paths
