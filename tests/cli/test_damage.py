#!/usr/bin/env python3
"""Damaged, odd and split GGUF files, as the program's user meets them. The numbers are those of the list of known faults
of other engines: each kind gives a message that names the place and the value, exit code 1, and never a signal."""
import os, struct, unittest

import gguf_file as g
from cli_case import Case, make, model

FAMILY = "qwen3moe"
TOKENS = [1, 2, 3, 4, 50, 60]


class Header(Case):
    def test_a1_dimensions_that_wrap(self):
        m = model()
        for dim in (2**42 + 1, 2**63, 2**64 - 1):
            m.tensor("blk.0.attn_q.weight").dims[1] = dim
            self.refused(["blk.0.attn_q.weight"], m)

    def test_a3_zero_dimension(self):
        m = g.Gguf()
        m.tensors = [g.Tensor("t", [4, 0], 0, b"")]
        self.refused(["'t'", "0"], m)
        m = model()
        m.tensor("output.weight").dims = [0, 300]
        self.refused("output.weight", m)

    def test_a5_too_many_dimensions(self):
        for n in (5, 9, 0xFFFFFFFF):
            m = model()
            m.tensor("blk.1.attn_k.weight").n_dims = n
            self.refused(["blk.1.attn_k.weight", str(n)], m)

    def test_a7_data_past_the_end(self):
        m = model()
        last = m.tensors[-1]
        whole = m.to_bytes(pad_last=False)
        self.works("inspect", "-m", self.written(whole))
        self.refused(last.name, whole[:-1])
        self.refused(["general.architecture", "missing"][:0] or "", whole[:len(whole) // 2])
        for offset in (2**30 // 32 * 32, 2**63, 2**64 - 32):
            m.tensors[-1].offset = offset
            self.refused(last.name, m)

    def test_a9_array_that_wraps(self):
        for element, count in ((g.U64, 2**61 + 1), (g.U8, 2**64 - 1), (g.STR, 2**60), (g.U32, 2**30)):
            m = model()
            m.set("some.array", g.ARR, (element, [], count))
            self.refused("some.array", m)

    def test_a13_alignment(self):
        plain = self.logits(make(), TOKENS)
        for align in (8, 24, 64, 4096):
            m = model()
            m.set("general.alignment", g.U32, align)
            path = self.written(m)
            for mode in ("none", "mmap"):
                self.assertEqual(self.logits(path, TOKENS, "-lm", mode), plain, f"alignment {align}")
        for align in (0, 1, 12, 2**31):
            m = model()
            m.set("general.alignment", g.U32, align)
            data = m.to_bytes() if 0 < align < 4096 else self.with_default_alignment(m)
            self.refused(["general.alignment", str(align)], data)

    def with_default_alignment(self, m):
        align = m.kv.pop("general.alignment")
        start = m.to_bytes()
        m.kv["general.alignment"] = align
        return start.replace(struct.pack("<QQ", len(m.tensors), len(m.kv) - 1), struct.pack("<QQ", len(m.tensors), len(m.kv)), 1).replace(
            b"GGUF" + struct.pack("<IQQ", 3, len(m.tensors), len(m.kv)),
            b"GGUF" + struct.pack("<IQQ", 3, len(m.tensors), len(m.kv)) + struct.pack("<Q", 17) + b"general.alignment" + struct.pack("<II", 4, align[1]), 1)

    def test_a15_what_follows_the_last_tensor(self):
        m = model()
        plain = self.logits(make(), TOKENS[:2])
        for data in (m.to_bytes(pad_last=False), *(m.to_bytes() + bytes(n) for n in (1, 7, 31))):
            self.assertEqual(self.logits(self.written(data), TOKENS[:2], "-lm", "mmap"), plain)
        self.assertNotIn("belong to nothing", self.works("inspect", "-m", self.written(m.to_bytes() + bytes(31))).out)
        self.assertIn("5000 bytes behind the last tensor belong to nothing",
                      self.works("inspect", "-m", self.written(m.to_bytes(pad_last=False) + bytes(5000))).out)

    def test_keys_that_are_not_applied_are_said(self):
        m = model()
        m.set("qwen3moe.attention.sliding_window", g.U32, 8)
        done = self.works("run", "-m", self.written(m), "--no-chat", "-p", "hi", "-n", "1")
        self.assertIn("'qwen3moe.attention.sliding_window' is 8, and this program does not apply it", done.err)

    def test_a23_big_endian(self):
        self.refused(["big-endian"], model().to_bytes(order=">"))

    def test_files_that_are_no_models(self):
        self.fails("/nowhere/model.gguf", "inspect", "-m", "/nowhere/model.gguf")
        self.refused("", os.path.dirname(make()))
        pipe = self.new_path()
        os.mkfifo(pipe)
        self.refused("regular file", pipe)
        for data in (b"", b"GG", b"PK\3\4" + bytes(100), bytes(4096)):
            self.refused("GGUF", data)
        for data in (b"GGUF", b"GGUF\3\0\0\0"):
            self.refused("the file ends at byte", data)
        for version in (0, 1, 4, 99):
            m = model()
            m.version = version
            self.refused(["version", str(version)], m)
        m = model()
        m.version = 2
        self.assertEqual(self.logits(self.written(m), [1]), self.logits(make(), [1]))

    def test_every_cut(self):
        whole = model("--vocabulary 280 --layers 1 --hidden 32 --head-length 8 --expert-width 8").to_bytes(pad_last=False)
        for n in list(range(0, 200, 23)) + list(range(200, len(whole) - 1, len(whole) // 25)):
            path = self.written(whole[:n])
            self.fails("", "inspect", "-m", path)
        for at in range(8, 600, 7):  # a flipped byte may make another sound file, but never ends in a signal
            damaged = bytearray(whole)
            damaged[at] ^= 0xFF
            self.assertIn(self.call("inspect", "-m", self.written(bytes(damaged))).returncode, (0, 1))


class Keys(Case):
    def test_a11_and_a17_tokenizer_faults(self):
        def text_fails(words, change):
            m = model()
            change(m)
            path = self.written(m)
            self.fails(words, "run", "-m", path, "--no-chat", "-p", "hi", "-n", "1")
            self.fails(words, "tokenize", "-m", path, "-p", "hi")
            out = self.call("inspect", "-m", path)  # shows the rest of the file all the same
            for word in words:
                self.assertIn(word, out.out + out.err)

        types = model().kv["tokenizer.ggml.token_type"][1][1]
        text_fails(["tokenizer.ggml.token_type", "uint8"], lambda m: m.set("tokenizer.ggml.token_type", g.ARR, (g.U8, types)))
        text_fails(["tokenizer.ggml.scores", "uint8"], lambda m: m.set("tokenizer.ggml.scores", g.ARR, (g.U8, [1] * 300)))
        text_fails(["tokenizer.ggml.token_type", "299"], lambda m: m.set("tokenizer.ggml.token_type", g.ARR, (g.I32, types[:-1])))
        text_fails(["tokenizer.ggml.eos_token_id", "100000"], lambda m: m.set("tokenizer.ggml.eos_token_id", g.U32, 100000))
        text_fails(["tokenizer.ggml.bos_token_id", "string"], lambda m: m.set("tokenizer.ggml.bos_token_id", g.STR, "1"))
        text_fails(["tokenizer.ggml.merges"], lambda m: m.set("tokenizer.ggml.merges", g.ARR, (g.STR, ["th", "e r"])))
        text_fails(["tokenizer.ggml.scores", "10"], lambda m: (m.set("tokenizer.ggml.model", g.STR, "llama"), m.set("tokenizer.ggml.scores", g.ARR, (g.F32, [0.0] * 10))))
        text_fails(["tokenizer.ggml.tokens"], lambda m: m.set("tokenizer.ggml.tokens", g.ARR, (g.U32, [1] * 300)))
        text_fails(["tokenizer.ggml.tokens"], lambda m: m.kv.pop("tokenizer.ggml.tokens"))
        text_fails(["tokenizer.ggml.model", "wordpiece"], lambda m: m.set("tokenizer.ggml.model", g.STR, "wordpiece"))
        text_fails(["tokenizer.ggml.pre", "martian"], lambda m: m.set("tokenizer.ggml.pre", g.STR, "martian"))

    def test_a17_sizes(self):
        for key in ("block_count", "embedding_length", "attention.head_count", "context_length", "expert_used_count"):
            full = f"{FAMILY}.{key}"
            m = model()
            m.kv.pop(full)
            self.refused(full, m)
            for type_id, value in ((g.U32, 0), (g.I32, -1), (g.U32, 2**32 - 1), (g.F32, 2.0), (g.STR, "2"), (g.U64, 2**63)):
                m.set(full, type_id, value)
                self.refused(full, m)
        for key, value in (("attention.head_count_kv", 3), ("attention.head_count", 5), ("attention.key_length", 17), ("embedding_length", 63),
                           ("expert_used_count", 5), ("expert_count", 3), ("expert_feed_forward_length", 31), ("rope.dimension_count", 18)):
            m = model()
            m.set(f"{FAMILY}.{key}", g.U32, value)
            self.refused("", m)
        for key, value in (("attention.layer_norm_rms_epsilon", -1.0), ("attention.layer_norm_rms_epsilon", float("nan")),
                           ("rope.freq_base", 0.0), ("rope.freq_base", float("inf")), ("expert_weights_scale", float("nan"))):
            m = model()
            m.set(f"{FAMILY}.{key}", g.F32, value)
            self.refused(key.split(".")[0], m)

    def test_unknown_family(self):
        for name in ("mamba", "deepseek2", "gpt-oss", "", "\x1b[31m"):
            m = model()
            m.set("general.architecture", g.STR, name)
            done = self.refused([name if name.isprintable() else "", "qwen3moe"], m)
            self.assertNotIn("\x1b", done.err)
        m = model()
        m.kv.pop("general.architecture")
        self.refused("general.architecture", m)

    def test_a25_expert_count_without_its_prefix(self):
        m = model()
        m.kv.pop(f"{FAMILY}.expert_count")
        m.set("expert_count", g.U32, 4)
        self.refused([f"{FAMILY}.expert_count", "absent"], m)
        m.set(f"{FAMILY}.expert_count", g.U32, 0)
        self.refused(f"{FAMILY}.expert_count", m)

    def changed(self, family, key, type_id, value):
        m = model(f"--family {family}" + (" --kv-heads 4" if family == "olmoe" else ""))
        m.set(f"{family}.{key}", type_id, value)
        return self.logits(self.written(m), TOKENS)

    def test_a27_renormalisation_defaults_by_family(self):
        for family, default in (("qwen3moe", True), ("llama", True), ("qwen2moe", False), ("olmoe", False)):
            absent = self.logits(make(f"--family {family}" + (" --kv-heads 4" if family == "olmoe" else "")), TOKENS)
            self.assertEqual(absent, self.changed(family, "expert_weights_norm", g.BOOL, default), family)
            self.assertNotEqual(absent, self.changed(family, "expert_weights_norm", g.BOOL, not default), family)

    def test_a29_weights_scale(self):
        absent = self.logits(make(), TOKENS)
        self.assertEqual(absent, self.changed(FAMILY, "expert_weights_scale", g.F32, 1.0))
        self.assertEqual(absent, self.changed(FAMILY, "expert_weights_scale", g.F32, 0.0))
        self.assertNotEqual(absent, self.changed(FAMILY, "expert_weights_scale", g.F32, 16.0))

    def test_a31_gating(self):
        for gating in (4, 77):
            m = model()
            m.set(f"{FAMILY}.expert_gating_func", g.U32, gating)
            self.refused([f"{FAMILY}.expert_gating_func", str(gating)], m)
        absent = self.logits(make(), TOKENS)
        self.assertEqual(absent, self.changed(FAMILY, "expert_gating_func", g.U32, 1))
        sigmoid = self.changed(FAMILY, "expert_gating_func", g.U32, 2)
        self.assertNotEqual(absent, sigmoid)
        # A bias tensor adds its values to the choice; it does not choose the gating.
        for gating, without in ((1, absent), (2, sigmoid)):
            m = model()
            m.set(f"{FAMILY}.expert_gating_func", g.U32, gating)
            for layer in (0, 1):
                m.tensors.append(g.Tensor(f"blk.{layer}.exp_probs_b.bias", [4], 0, struct.pack("<4f", 0, 0, 0, 0)))
            self.assertEqual(without, self.logits(self.written(m), TOKENS))
            m.tensors[-1].data = struct.pack("<4f", 100, 0, 0, 100)
            self.assertNotEqual(without, self.logits(self.written(m), TOKENS))

    def test_a33_next_token_layers_that_are_not_there(self):
        plain = self.logits(make(), TOKENS)
        for count in (2, 3):
            m = model()
            m.set(f"{FAMILY}.nextn_predict_layers", g.U32, 1)
            m.set(f"{FAMILY}.block_count", g.U32, count)
            self.assertEqual(plain, self.logits(self.written(m), TOKENS), f"block_count {count}")

    def test_rope_scaling(self):
        m = model()
        m.set(f"{FAMILY}.rope.scaling.type", g.STR, "spiral")
        self.refused([f"{FAMILY}.rope.scaling.type", "spiral"], m)
        for factor in (-2.0, float("inf")):
            m.set(f"{FAMILY}.rope.scaling.type", g.STR, "yarn")
            m.set(f"{FAMILY}.rope.scaling.factor", g.F32, factor)
            self.refused("rope", m)
        m = model("--family llama --rope-factors")
        m.tensor("rope_freqs.weight").data = struct.pack("<8f", *[1.0] * 7, 0.0)
        path = self.written(m)
        self.fails(["rope_freqs.weight", "0"], "run", "-m", path, "--no-chat", "-p", "hi", "-n", "1")


class Tensors(Case):
    def test_a37_mxfp4(self):
        m = model("--hidden 64 --expert-width 32 --expert-type MXFP4")
        experts = m.tensor("blk.0.ffn_gate_exps.weight")
        self.assertEqual((experts.type_id, len(experts.data)), (39, 17 * 64 // 32 * 32 * 4))
        self.assertEqual(self.logits(self.written(m), TOKENS), self.logits(self.written(m), TOKENS, "-lm", "mmap"))

    def test_types_that_cannot_be_computed_with(self):
        for type_id, name in ((16, "IQ2_XXS"), (4, "4"), (200, "200")):
            m = model()
            m.tensor("blk.0.attn_q.weight").type_id = type_id
            self.refused(["blk.0.attn_q.weight", name] if type_id == 16 else ["blk.0.attn_q.weight"], m)
        m = model()  # a norm in a type that only matrices may have
        norm = m.tensor("blk.0.attn_norm.weight")
        norm.type_id, norm.data = 1, norm.data[:128]
        self.refused(["blk.0.attn_norm.weight", "F16", "F32"], m)

    def test_a39_rows_that_are_no_whole_blocks(self):
        for type_id, dims, size in ((14, [8, 64], 420), (12, [896, 2], 1008), (8, [48, 2], 102)):
            m = model()
            m.tensors.append(g.Tensor("extra.weight", dims, type_id, bytes(size)))
            self.refused("extra.weight", m)

    def test_a41_more_or_fewer_rows_than_tokens(self):
        def rows(n):
            m = model()
            for name in ("token_embd.weight", "output.weight"):
                t = m.tensor(name)
                t.dims[1] = n
                t.data = (t.data + t.data[:64 * 4 * 8])[:64 * 4 * n]
            m.kv.pop(f"{FAMILY}.vocab_size")
            return self.written(m)

        padded = rows(304)
        self.assertEqual([len(r) for r in self.logits(padded, [1, 303])], [304, 304])
        ids = self.works("run", "-m", padded, "--no-chat", "-p", "hi", "-n", "40", "--temp", "100", "--top-k", "0", "--top-p", "1", "--min-p", "0", "-s", "3", "--ignore-eos")
        self.assertNotIn("error", ids.err)
        self.fails(["tokenizer.ggml.tokens", "300", "296"], "run", "-m", rows(296), "--no-chat", "-p", "hi", "-n", "1")
        m = model()
        m.tensor("output.weight").dims[1] = 299
        m.tensor("output.weight").data = m.tensor("output.weight").data[:64 * 4 * 299]
        self.refused(["output.weight", "299", "300"], m)

    def test_a43_dense_and_moe_layers(self):
        path = make("--layers 4 --dense-layers 0,2 --dense-width 80")
        shown = self.works("inspect", "-m", path, "--json").out
        self.assertIn('"moe_layers": 2', shown)
        self.logits(path, TOKENS)
        m = model("--layers 4 --dense-layers 0,2 --dense-width 80")
        m.set(f"{FAMILY}.leading_dense_block_count", g.U32, 1)
        self.logits(self.written(m), TOKENS)

    def test_a45_tensors_that_nobody_uses(self):
        m = model()
        for name in ("v.blk.0.attn_q.weight", "v.patch_embd.weight", "mm.0.weight"):
            m.tensors.append(g.Tensor(name, [32], 0, bytes(128)))
        path = self.written(m)
        for command in (["run", "--no-chat", "-p", "hi", "-n", "1"], ["logits", "--tokens", "1", "-o", self.new_path(".f32")]):
            done = self.works(command[0], "-m", path, *command[1:])
            self.assertIn("v.blk.0.attn_q.weight", done.err)
            self.assertIn("3 tensors", done.err)
        # A tensor of a layer that is run would change the result: it is not passed over.
        m.tensors.append(g.Tensor("blk.0.ffn_gate_exps.bias", [32, 4], 0, bytes(512)))
        self.refused("blk.0.ffn_gate_exps.bias", m)

    def test_missing_and_misshapen(self):
        for name in ("token_embd.weight", "output_norm.weight", "blk.1.attn_v.weight", "blk.1.ffn_down_exps.weight", "blk.0.attn_q_norm.weight"):
            m = model()
            m.tensors = [t for t in m.tensors if t.name != name]
            self.refused(name, m)
        m = model("--family llama --split-experts")
        m.tensors = [t for t in m.tensors if t.name != "blk.1.ffn_up.2.weight"]
        self.refused("blk.1.ffn_up.2.weight", m)
        m = model()
        m.tensors.append(m.tensors[3])
        self.refused(m.tensors[3].name, m)

    def test_a51_nan_in_a_rare_expert(self):
        for flags, at, nan in (("", 0, struct.pack("<f", float("nan"))), (" --expert-type Q8_0", 0, b"\x00\x7e")):
            m = model("--decisive-router --layers 1" + flags)
            t = m.tensor("blk.0.ffn_up_exps.weight")
            expert = len(t.data) // 4
            t.data = t.data[:3 * expert] + nan + t.data[3 * expert + len(nan):]
            path = self.written(m)
            self.logits(path, [0, 1, 4])  # experts 0, 1 and 2
            self.fails(["blk.0.ffn_up_exps.weight", "expert 3", "NaN"], "inspect", "-m", path, "--check")
            out = self.new_path(".f32")
            self.fails("NaN", "logits", "-m", path, "--tokens", "0,2", "-o", out)
            self.assertFalse(os.path.exists(out))
            self.fails("NaN", "run", "-m", path, "--no-chat", "-p", "\x02", "-n", "1")
        self.works("inspect", "-m", make(), "--check")


class Shards(Case):
    def split(self, flags="", shard_of=None, count=3):
        m = model(flags)
        names = [t.name for t in m.tensors]
        return m.write_shards(self.new_path(""), shard_of or (lambda name: names.index(name) * count // len(names)), count)

    def test_a19_any_shard_leads_to_all(self):
        plain = self.logits(make(), TOKENS)
        for mode in ("none", "mmap"):
            for path in self.split():
                self.assertEqual(self.logits(path, TOKENS, "-lm", mode), plain)

    def test_a19_a_shard_is_missing(self):
        paths = self.split()
        os.remove(paths[1])
        for path in (paths[0], paths[2]):
            self.refused("-00002-of-00003.gguf", path)
        paths = self.split()
        renamed = paths[1].replace("00002", "00004")
        os.rename(paths[1], renamed)
        self.refused("-00002-of-00003.gguf", paths[0])
        self.refused("", renamed)
        paths = self.split()
        other = paths[0].replace(".gguf", "-folder")
        os.mkdir(other)
        os.rename(paths[0], f"{other}/{os.path.basename(paths[0])}")
        self.refused("-00001-of-00003.gguf", paths[1])

    def test_a19_shards_of_different_models(self):
        ours, theirs = self.split(), self.split("--seed 9 --layers 3")
        os.replace(theirs[1], ours[1])
        self.refused("-of-00003.gguf", ours[0])
        ours = self.split()
        m = g.Gguf.read(ours[1])
        m.set("split.no", g.U16, 2)
        m.write(ours[1])
        self.refused("split.no", ours[0])
        m.set("split.no", g.U16, 1)
        m.set("split.count", g.U16, 4)
        m.write(ours[1])
        self.refused("split.count", ours[0])

    def test_a21_one_layers_experts_in_several_shards(self):
        plain = self.logits(make("--family qwen2moe"), TOKENS)
        where = lambda name: 0 if "gate_exps" in name else 1 if "down_exps" in name else 2 if "bias" in name else 1
        for path in self.split("--family qwen2moe", where)[:1]:
            for mode in ("none", "mmap"):
                self.assertEqual(self.logits(path, TOKENS, "-lm", mode), plain)


if __name__ == "__main__":
    unittest.main()
