#include "support/model_maker.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <tuple>

#include "numerics/quantize.h"

namespace spillway::test_support {
namespace {

using Bytes = std::vector<std::byte>;

// GPT-2's stand-in character for each byte, as UTF-8.
std::string byte_character(int byte) {
  static const std::vector<int> code = [] {
    std::vector<int> codes(256);
    int next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      codes[b] = printable ? b : next++;
    }
    return codes;
  }();
  const int c = code[byte];
  if (c < 0x80) return std::string(1, static_cast<char>(c));
  return {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
}

constexpr const char* kTemplate =
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor "
    "%}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

void add_tokenizer(gguf::Metadata& metadata, uint32_t tokens) {
  std::vector<std::string> texts;
  std::vector<int32_t> types;
  for (int byte = 0; byte < 256; ++byte) texts.push_back(byte_character(byte)), types.push_back(1);
  std::vector<std::string> merges;
  for (const auto& [left, right] :
       {std::pair("t", "h"), {"th", "e"}, {"i", "n"}, {"e", "r"}, {"a", "n"}, {"an", "d"}}) {
    merges.push_back(std::string(left) + " " + right);
    texts.push_back(std::string(left) + right), types.push_back(1);
  }
  for (const char* special : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"})
    texts.push_back(special), types.push_back(3);
  const uint32_t end = static_cast<uint32_t>(texts.size()) - 1;
  while (texts.size() < tokens)
    texts.push_back("[unused" + std::to_string(texts.size()) + "]"), types.push_back(5);
  metadata.set("tokenizer.ggml.model", "gpt2");
  metadata.set("tokenizer.ggml.pre", "qwen2");
  metadata.set("tokenizer.ggml.tokens", gguf::Array::of(texts));
  metadata.set("tokenizer.ggml.token_type", gguf::Array::of(types));
  metadata.set("tokenizer.ggml.merges", gguf::Array::of(merges));
  metadata.set("tokenizer.ggml.bos_token_id", end - 2);
  metadata.set("tokenizer.ggml.eos_token_id", end);
  metadata.set("tokenizer.ggml.padding_token_id", end - 2);
  metadata.set("tokenizer.ggml.add_bos_token", false);
  metadata.set("tokenizer.chat_template", kTemplate);
}

class Maker {
 public:
  explicit Maker(const ModelSpec& spec) : s_(spec), random_(spec.seed) {}

  MadeModel make() {
    add_metadata();
    add_tokenizer(model_.metadata, s_.vocabulary);
    add_embedding();
    for (uint32_t n = 0; n < s_.layers; ++n)
      add_layer("blk." + std::to_string(n) + ".",
                s_.experts > 0 && std::ranges::find(s_.dense_layers, n) == s_.dense_layers.end());
    // Logits of deviation 2: a tied head has the embedding's deviation of 1 a value.
    vector("output_norm.weight", s_.hidden, 1.0f,
           s_.tied ? 2.0f / std::sqrt(static_cast<float>(s_.hidden)) : 1.0f);
    if (!s_.tied) matrix("output.weight", s_.type, s_.vocabulary, s_.hidden, 2.0f);
    if (s_.rope_factors) add_rope_factors();
    return std::move(model_);
  }

 private:
  void add_metadata() {
    gguf::Metadata& m = model_.metadata;
    const auto key = [&](const char* suffix) { return s_.family + "." + suffix; };
    m.set("general.architecture", s_.family);
    m.set("general.name", "random " + s_.family);
    m.set(key("block_count"), s_.layers);
    m.set(key("context_length"), s_.context);
    m.set(key("embedding_length"), s_.hidden);
    m.set(key("feed_forward_length"),
          s_.dense_layers.empty() && s_.experts > 0 ? s_.expert_width : s_.dense_width);
    m.set(key("expert_feed_forward_length"), s_.expert_width);
    if (s_.family == "qwen2moe") m.set(key("expert_shared_feed_forward_length"), s_.shared_width);
    m.set(key("attention.head_count"), s_.heads);
    m.set(key("attention.head_count_kv"), s_.kv_heads);
    m.set(key("attention.key_length"), s_.head_length);
    m.set(key("attention.value_length"), s_.head_length);
    m.set(key("rope.dimension_count"), s_.rope_length ? s_.rope_length : s_.head_length);
    if (!s_.rope_scaling.empty()) {
      if (s_.rope_scaling != "unnamed") m.set(key("rope.scaling.type"), s_.rope_scaling);
      m.set(key("rope.scaling.factor"), s_.rope_factor);
      if (s_.rope_scaling == "yarn")
        m.set(key("rope.scaling.original_context_length"), s_.rope_original_context);
    }
    m.set(key("attention.layer_norm_rms_epsilon"), 1e-6f);
    m.set(key("rope.freq_base"), 10000.0f);
    m.set(key("expert_count"), s_.experts);
    m.set(key("expert_used_count"), s_.used);
    if (s_.expert_scale != 0) m.set(key("expert_weights_scale"), s_.expert_scale);
    m.set(key("vocab_size"), s_.vocabulary);
  }

  void add_embedding() {
    if (!s_.decisive_router) {
      matrix("token_embd.weight", s_.type, s_.vocabulary, s_.hidden,
             std::sqrt(static_cast<float>(s_.hidden)));
      return;
    }
    auto bytes = std::make_shared<Bytes>(s_.vocabulary * row_bytes(s_.type, s_.hidden));
    std::vector<float> row(s_.hidden);
    for (uint32_t t = 0; t < s_.vocabulary; ++t) {
      for (float& value : row) value = next_value();
      std::fill_n(row.begin(), s_.experts, -1.0f);
      uint32_t expert = t % s_.experts;
      for (uint32_t rank = 0; rank < s_.used; ++rank) {
        while (row[expert] > 0) expert = (expert + 1) % s_.experts;
        row[expert] = 3.0f - 0.5f * static_cast<float>(rank);
        expert = (expert + 1 + t / s_.experts) % s_.experts;
      }
      numerics::quantize_weights(s_.type, row.data(), s_.hidden,
                                 bytes->data() + t * row_bytes(s_.type, s_.hidden));
    }
    model_.tensors.push_back({"token_embd.weight", s_.type, {s_.hidden, s_.vocabulary}, bytes});
  }

  void add_router(const std::string& name) {
    if (!s_.decisive_router) return matrix(name, TensorType::kF32, s_.experts, s_.hidden, 2.5f);
    std::vector<float> values(size_t{s_.experts} * s_.hidden);
    for (uint32_t e = 0; e < s_.experts; ++e) {
      for (uint32_t i = 0; i < s_.hidden; ++i)
        values[size_t{e} * s_.hidden + i] = 0.3f / std::sqrt(static_cast<float>(s_.hidden)) * next_value();
      for (uint32_t i = 0; i < s_.experts; ++i) values[size_t{e} * s_.hidden + i] = i == e ? 4.0f : 0.0f;
    }
    auto bytes = std::make_shared<Bytes>(values.size() * sizeof(float));
    std::memcpy(bytes->data(), values.data(), bytes->size());
    model_.tensors.push_back({name, TensorType::kF32, {s_.hidden, s_.experts}, bytes});
  }

  void add_rope_factors() {
    const uint32_t n = (s_.rope_length ? s_.rope_length : s_.head_length) / 2;
    std::vector<float> values(n);  // 1 for the fast half, rising to 8: Llama 3's manner
    for (uint32_t i = 0; i < n; ++i)
      values[i] =
          i < n / 2 ? 1.0f : 1.0f + 7.0f * static_cast<float>(i - n / 2 + 1) / static_cast<float>(n - n / 2);
    auto bytes = std::make_shared<Bytes>(n * sizeof(float));
    std::memcpy(bytes->data(), values.data(), bytes->size());
    model_.tensors.push_back({"rope_freqs.weight", TensorType::kF32, {n}, bytes});
  }

  void add_layer(const std::string& p, bool is_moe) {
    const uint32_t q = s_.heads * s_.head_length, kv = s_.kv_heads * s_.head_length;
    vector(p + "attn_norm.weight", s_.hidden, 1.0f);
    matrix(p + "attn_q.weight", s_.type, q, s_.hidden, 1.5f);
    matrix(p + "attn_k.weight", s_.type, kv, s_.hidden, 1.5f);
    matrix(p + "attn_v.weight", s_.type, kv, s_.hidden, 1.0f);
    to_hidden(p + "attn_output.weight", s_.type, q, 1.0f);
    if (s_.family == "qwen2moe") {
      vector(p + "attn_q.bias", q, 0.0f);
      vector(p + "attn_k.bias", kv, 0.0f);
      vector(p + "attn_v.bias", kv, 0.0f);
    }
    if (s_.family == "qwen3moe" || s_.family == "olmoe") {
      const bool full = s_.family == "olmoe";
      vector(p + "attn_q_norm.weight", full ? q : s_.head_length, 1.0f);
      vector(p + "attn_k_norm.weight", full ? kv : s_.head_length, 1.0f);
    }
    vector(p + "ffn_norm.weight", s_.hidden, 1.0f);
    if (!is_moe) {
      matrix(p + "ffn_gate.weight", s_.type, s_.dense_width, s_.hidden, 1.5f);
      matrix(p + "ffn_up.weight", s_.type, s_.dense_width, s_.hidden, 1.5f);
      to_hidden(p + "ffn_down.weight", s_.type, s_.dense_width, 1.5f);
      return;
    }
    add_router(p + "ffn_gate_inp.weight");
    experts(p, "gate", s_.expert_width, s_.hidden);
    experts(p, "up", s_.expert_width, s_.hidden);
    experts(p, "down", s_.hidden, s_.expert_width);
    if (s_.family == "qwen2moe") {
      vector(p + "ffn_gate_inp_shexp.weight", s_.hidden, 0.0f);
      matrix(p + "ffn_gate_shexp.weight", s_.type, s_.shared_width, s_.hidden, 1.5f);
      matrix(p + "ffn_up_shexp.weight", s_.type, s_.shared_width, s_.hidden, 1.5f);
      to_hidden(p + "ffn_down_shexp.weight", s_.type, s_.shared_width, 1.5f);
    }
  }

  void experts(const std::string& p, const std::string& part, uint32_t rows, uint32_t cols) {
    if (s_.split_experts) {
      for (uint32_t e = 0; e < s_.experts; ++e)
        model_.tensors.push_back({p + "ffn_" + part + "." + std::to_string(e) + ".weight",
                                  s_.expert_type,
                                  {cols, rows},
                                  expert_matrix(part, rows, cols)});
      return;
    }
    auto all = std::make_shared<Bytes>();
    for (uint32_t e = 0; e < s_.experts; ++e) {
      const auto one = expert_matrix(part, rows, cols);
      all->insert(all->end(), one->begin(), one->end());
    }
    model_.tensors.push_back(
        {p + "ffn_" + part + "_exps.weight", s_.expert_type, {cols, rows, s_.experts}, all});
  }

  void matrix(const std::string& name, TensorType type, uint32_t rows, uint32_t cols, float gain) {
    model_.tensors.push_back({name, type, {cols, rows}, random_matrix(type, rows, cols, gain)});
  }

  std::shared_ptr<const Bytes> expert_matrix(const std::string& part, uint32_t rows, uint32_t cols) {
    return part == "down" ? without_router_rows(s_.expert_type, cols, 1.5f)
                          : random_matrix(s_.expert_type, rows, cols, 1.5f);
  }

  // A matrix whose result is added to the hidden values.
  void to_hidden(const std::string& name, TensorType type, uint32_t cols, float gain) {
    model_.tensors.push_back({name, type, {cols, s_.hidden}, without_router_rows(type, cols, gain)});
  }
  std::shared_ptr<const Bytes> without_router_rows(TensorType type, uint32_t cols, float gain) {
    auto made = random_matrix(type, s_.hidden, cols, gain);
    if (!s_.decisive_router) return made;
    auto bytes = std::make_shared<Bytes>(*made);
    const std::vector<float> zeros(cols, 0.0f);
    for (uint32_t r = 0; r < s_.experts; ++r)
      numerics::quantize_weights(type, zeros.data(), cols, bytes->data() + r * row_bytes(type, cols));
    return bytes;
  }

  void vector(const std::string& name, uint32_t n, float mean, float scale = 1.0f) {
    std::vector<float> values(n);
    for (float& value : values) value = (mean + 0.2f * next_value()) * scale;
    auto bytes = std::make_shared<Bytes>(n * sizeof(float));
    std::memcpy(bytes->data(), values.data(), bytes->size());
    model_.tensors.push_back({name, TensorType::kF32, {n}, bytes});
  }

  // Normal values of deviation gain / sqrt(cols).
  std::shared_ptr<const Bytes> random_matrix(TensorType type, uint32_t rows, uint32_t cols, float gain) {
    auto& made = pool_[{type, rows, cols}];
    uint32_t& next = next_in_pool_[{type, rows, cols}];
    if (made.size() >= s_.distinct) return made[next++ % made.size()];
    std::vector<float> row(cols);
    auto bytes = std::make_shared<Bytes>(rows * row_bytes(type, cols));
    for (uint32_t r = 0; r < rows; ++r) {
      for (float& value : row) value = gain / std::sqrt(static_cast<float>(cols)) * next_value();
      numerics::quantize_weights(type, row.data(), cols, bytes->data() + r * row_bytes(type, cols));
    }
    if (s_.distinct != UINT32_MAX) made.push_back(bytes);
    return bytes;
  }

  // Of mean 0 and deviation 1, nearly normal: the sum of four uniform 16-bit numbers, whose variance is
  // 4 * 2^32 / 12. Exact, so that the files are the same on every machine.
  float next_value() {
    const uint64_t bits = random_();
    const int32_t sum =
        static_cast<int32_t>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    constexpr float kInverseDeviation = 1.0f / 37837.23f;
    return static_cast<float>(sum - 131070) * kInverseDeviation;
  }

  const ModelSpec& s_;
  std::mt19937_64 random_;
  std::map<std::tuple<TensorType, uint32_t, uint32_t>, std::vector<std::shared_ptr<const Bytes>>> pool_;
  std::map<std::tuple<TensorType, uint32_t, uint32_t>, uint32_t> next_in_pool_;
  MadeModel model_;
};

}  // namespace

MadeModel::Tensor* MadeModel::find(std::string_view name) {
  for (Tensor& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

gguf::FileSource MadeModel::source() const {
  gguf::FileSource source{.metadata = metadata};
  for (const Tensor& t : tensors)
    source.tensors.push_back({t.name, static_cast<uint32_t>(t.type), t.dims, *t.bytes});
  return source;
}

void MadeModel::write(const std::string& path) const {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const auto done = gguf::write_file(source(), [&](std::span<const std::byte> bytes) -> Result<void> {
    if (file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size()) return {};
    return fail(Error::Kind::kIo, "'{}' cannot be written", path);
  });
  if (!file || std::fclose(file) != 0 || !done) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), done ? "cannot be written" : done.error().message.c_str());
    std::exit(1);
  }
}

MadeModel make_model(const ModelSpec& spec) { return Maker(spec).make(); }

uint64_t file_hash(const MadeModel& model) {
  const auto bytes = gguf::write_file(model.source());
  return bytes ? XXH3_64bits(bytes->data(), bytes->size()) : 0;
}

}  // namespace spillway::test_support
