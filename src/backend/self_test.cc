#include "backend/self_test.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "numerics/activation.h"
#include "numerics/attention.h"
#include "numerics/formats.h"
#include "numerics/glu.h"
#include "numerics/layout.h"
#include "numerics/norm.h"
#include "numerics/product.h"

namespace spillway::backend {
namespace {

// One group of 16 rows and a part of a second; two blocks of 256 values, or sixteen of 32.
constexpr uint32_t kRows = 19, kCols = 512;
// More tokens than any product handles at once, so that both of its forms run.
constexpr uint32_t kTokens = 9;
constexpr uint32_t kHeads = 2, kHead = 64, kKeys = 140;  // a chunk of keys and some
constexpr uint32_t kPages = (kKeys + kPagePositions - 1) / kPagePositions;

enum : BufferId { kX, kY, kQuery, kKey, kValue, kAttended, kBuffers };

// The same numbers in every run: a linear congruential generator (Numerical Recipes' constants).
class Numbers {
 public:
  uint32_t bits() { return (state_ = state_ * 1664525u + 1013904223u) >> 8; }
  // Of magnitude 2^low .. 2^high.
  float value(int low, int high) {
    const uint32_t exponent =
        static_cast<uint32_t>(127 + low) + bits() % static_cast<uint32_t>(high - low + 1);
    return std::bit_cast<float>((bits() & 1) << 31 | exponent << 23 | (bits() & 0x7fffff));
  }

 private:
  uint32_t state_ = 12345;
};

// Offsets of the half-precision scales of a block.
std::vector<size_t> scale_offsets(TensorType type) {
  namespace at = numerics::layout;
  switch (type) {
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      return {at::q4_k::kD, at::q4_k::kDmin};
    case TensorType::kQ2_K:
      return {at::q2_k::kD, at::q2_k::kDmin};
    case TensorType::kQ3_K:
      return {at::q3_k::kD};
    case TensorType::kQ6_K:
      return {at::q6_k::kD};
    case TensorType::kMXFP4:
      return {};
    default:
      return {0};
  }
}

// Rows of random codes; scales are ordinary, denormal halves, or the largest. Row 5 has the largest codes of
// one sign: its integers exceed 2^24 where the type allows.
std::vector<std::byte> make_weights(TensorType type, Numbers& numbers) {
  static constexpr uint16_t kScales[] = {0x2c01, 0x0001, 0x83ff, 0x7bff, 0x0400, 0xa9ff, 0x1555};
  std::vector<std::byte> rows(kRows * row_bytes(type, kCols));
  for (std::byte& byte : rows) byte = static_cast<std::byte>(numbers.bits());
  const TensorTypeInfo& type_info = info(type);
  const size_t blocks = kCols / type_info.block_length;
  for (uint32_t r = 0; r < kRows; ++r)
    for (size_t b = 0; b < blocks; ++b) {
      std::byte* block = rows.data() + (r * blocks + b) * type_info.block_bytes;
      if (!numerics::format_traits(type).quantized) {
        const float value = numbers.value(r % 3 == 0 ? -45 : -8, 4);
        const uint32_t bits = std::bit_cast<uint32_t>(value);
        const auto half =
            static_cast<uint16_t>(type == TensorType::kF16 ? numerics::f32_to_f16(value) : bits >> 16);
        if (type == TensorType::kF32)
          std::memcpy(block, &value, sizeof value);
        else
          std::memcpy(block, &half, sizeof half);
        continue;
      }
      if (r == 5) std::fill_n(block, type_info.block_bytes, std::byte{0x80});
      if (type == TensorType::kMXFP4)
        block[0] = static_cast<std::byte>(r % 4 == 0 ? numbers.bits() : 120 + numbers.bits() % 10);
      for (const size_t at : scale_offsets(type)) std::memcpy(block + at, &kScales[numbers.bits() % 7], 2);
    }
  return rows;
}

// Activations: ordinary rows, one of a single sign (the largest integers), one of halfway codes, one with an
// infinity, one of zeros, one of any size.
std::vector<float> make_activations(Numbers& numbers) {
  std::vector<float> x(size_t{kTokens} * kCols);
  for (uint32_t t = 0; t < kTokens; ++t)
    for (uint32_t c = 0; c < kCols; ++c) {
      float& v = x[t * kCols + c];
      switch (t) {
        case 1:
          v = 127.0f;
          break;
        case 2:  // 127 makes the scale 1 (nearly); n + 0.5 are its halfway cases
          v = c % 32 == 0 ? 127.0f : static_cast<float>(static_cast<int>(numbers.bits() % 250) - 125) + 0.5f;
          break;
        case 3:
          v = numbers.value(-50, 50);
          break;
        case 4:
          v = c == 77 ? std::bit_cast<float>(numerics::kInfinityBits) : numbers.value(-3, 3);
          break;
        case 5:
          v = 0.0f;
          break;
        default:
          v = numbers.value(-6, 2);
      }
    }
  return x;
}

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (numerics::is_nan(a) && numerics::is_nan(b));
}

class SelfTest {
 public:
  SelfTest(Device& device, const SelfTestOptions& options)
      : device_(device), options_(options), x_(make_activations(numbers_)) {}

  Result<std::vector<std::string>> run() {
    SW_TRY(load());
    SW_TRY(test_products());
    SW_TRY(test_functions());
    SW_TRY(test_attention());
    return std::move(faults_);
  }

 private:
  Result<void> load() {
    for (const TensorType type : options_.types) weights_.push_back(make_weights(type, numbers_));
    std::vector<float> norm(kCols);
    for (float& v : norm) v = numbers_.value(-3, 3);
    norm_ = norm;

    DeviceSpec spec;
    for (const TensorType type : options_.types) spec.weights.push_back({type, kRows, kCols, true});
    spec.weights.push_back({TensorType::kF32, 1, kCols, true});
    spec.layers = {{.on_device = true, .kv_heads = 1, .key_length = kHead, .value_length = kHead}};
    spec.kv_types = options_.kv_types;
    spec.kv_pages = kPages;
    spec.sizes = {.max_rows = kKeys,
                  .max_width = kCols,
                  .hidden = kCols,
                  .max_head_length = kHead,
                  .buffer_widths = {kCols, kCols, kHeads * kHead, kHead, kHead, kHeads * kHead}};
    SW_TRY(device_.prepare(spec));
    for (size_t i = 0; i < weights_.size(); ++i)
      SW_TRY(device_.upload(static_cast<WeightId>(i),
                            {options_.types[i], Layout::kFile, kRows, kCols, weights_[i].data()}));
    return device_.upload(
        static_cast<WeightId>(weights_.size()),
        {TensorType::kF32, Layout::kFile, 1, kCols, reinterpret_cast<const std::byte*>(norm_.data())});
  }

  void begin(uint32_t rows, uint32_t first_position) {
    tokens_.assign(rows, 0);
    positions_.resize(rows);
    for (uint32_t r = 0; r < rows; ++r) positions_[r] = first_position + r;
    piece_ = {0, rows, first_position, pages_};
    device_.begin({tokens_, positions_, {&piece_, 1}});
  }

  void expect(std::string_view what, std::span<const float> expected, std::span<const float> got) {
    for (size_t i = 0; i < expected.size(); ++i)
      if (!same(expected[i], got[i])) {
        faults_.push_back(fmt::format("{}: {:a} instead of {:a}", what, got[i], expected[i]));
        return;
      }
  }

  Result<void> test_products() {
    for (const uint32_t tokens : {1u, kTokens})
      for (size_t i = 0; i < weights_.size(); ++i) {
        begin(tokens, 0);
        device_.write_buffer(kX, x_.data());
        const Linear target = {.weight = static_cast<WeightId>(i), .out = kY};
        device_.linear(kX, {&target, 1});
        std::vector<float> got(size_t{tokens} * kCols);
        device_.read_buffer(kY, got.data());
        SW_TRY(device_.finish());
        for (uint32_t t = 0; t < tokens; ++t)
          expect(fmt::format("products of {}", info(options_.types[i]).name), products(i, t),
                 std::span(got).subspan(size_t{t} * kCols, kRows));
      }
    return {};
  }

  std::vector<float> products(size_t weight, uint32_t token) const {
    const TensorType type = options_.types[weight];
    const float* x = x_.data() + size_t{token} * kCols;
    const uint16_t length = numerics::format_traits(type).block_length;
    std::vector<float> f32(kCols), d(kCols / 32), out;
    std::vector<int8_t> q(kCols);
    std::vector<int16_t> sums(kCols / 16);
    numerics::ActivationRow row = {.q = q.data(), .d = d.data(), .sums = sums.data()};
    if (length == 32) numerics::quantize_row_32(x, kCols, q.data(), d.data(), sums.data());
    if (length == 256) numerics::quantize_row_256(x, kCols, q.data(), d.data(), sums.data());
    if (length == 1) {
      numerics::flush_row(x, kCols, f32.data());
      row = {.f32 = f32.data()};
    }
    for (uint32_t r = 0; r < kRows; ++r)
      out.push_back(
          numerics::row_product(type, weights_[weight].data() + r * row_bytes(type, kCols), row, kCols));
    return out;
  }

  // exp, reciprocal and reciprocal square root, through the operations that use them.
  Result<void> test_functions() {
    std::vector<float> gate(size_t{kTokens} * kCols), up(gate.size());
    for (size_t i = 0; i < gate.size(); ++i) {
      gate[i] = numbers_.value(i % 4 == 0 ? -126 : -6, i % 4 == 0 ? 127 : 7);  // exp saturates beyond 88
      up[i] = numbers_.value(-45, 3);
    }
    std::vector<float> got(gate.size()), normed(gate.size());
    begin(kTokens, 0);
    device_.write_buffer(kX, gate.data());
    device_.write_buffer(kY, up.data());
    device_.silu_mul(kX, kY, kCols);
    device_.read_buffer(kX, got.data());
    device_.write_buffer(kX, x_.data());
    device_.rms_norm(kX, kCols, static_cast<WeightId>(weights_.size()), 1e-6f, kY);
    device_.read_buffer(kY, normed.data());
    SW_TRY(device_.finish());
    numerics::silu_mul(gate.data(), up.data(), gate.size());
    expect("exponentials and reciprocals", gate, got);
    std::vector<float> expected(kCols);
    for (uint32_t t = 0; t < kTokens; ++t) {
      numerics::rms_norm(x_.data() + size_t{t} * kCols, norm_.data(), kCols, 1e-6f, expected.data());
      expect("norms", expected, std::span(normed).subspan(size_t{t} * kCols, kCols));
    }
    return {};
  }

  float stored(KvType type, float x) const {
    return type == KvType::kF32 ? numerics::flush(x) : numerics::f16_to_f32(numerics::f32_to_f16(x));
  }

  Result<void> test_attention() {
    const AttentionSpec spec = {.layer = 0,
                                .heads = kHeads,
                                .kv_heads = 1,
                                .key_length = kHead,
                                .value_length = kHead,
                                .scale = 0.125f};
    std::vector<float> keys(size_t{kKeys} * kHead), values(keys.size()),
        queries(size_t{kKeys} * kHeads * kHead);
    for (float& v : keys) v = numbers_.value(-12, 2);
    for (float& v : values) v = numbers_.value(-27, 3);  // denormal halves too
    for (float& v : queries) v = numbers_.value(-4, 2);
    std::vector<float> got(queries.size());
    begin(kKeys, 0);
    device_.write_buffer(kQuery, queries.data());
    device_.write_buffer(kKey, keys.data());
    device_.write_buffer(kValue, values.data());
    device_.store_kv(kKey, kValue, spec);
    device_.attention(kQuery, spec, kAttended);
    device_.read_buffer(kAttended, got.data());
    SW_TRY(device_.finish());
    std::vector<float> expected(kHead), scratch(numerics::attention_scratch(kHead, kHead));
    for (const uint32_t row : {0u, 17u, kKeys - 1})
      for (uint32_t h = 0; h < kHeads; ++h) {
        const size_t at = (size_t{row} * kHeads + h) * kHead;
        numerics::attention(
            {.key_length = kHead, .value_length = kHead, .end_key = row + 1, .scale = spec.scale},
            queries.data() + at,
            [&](uint32_t t, uint32_t d) {
              return stored(options_.kv_types.key, keys[size_t{t} * kHead + d]);
            },
            [&](uint32_t t, uint32_t d) {
              return stored(options_.kv_types.value, values[size_t{t} * kHead + d]);
            },
            expected.data(), scratch.data());
        expect("attention", expected, std::span(got).subspan(at, kHead));
      }
    return {};
  }

  Device& device_;
  const SelfTestOptions& options_;
  Numbers numbers_;
  std::vector<std::vector<std::byte>> weights_;
  std::vector<float> norm_;
  const std::vector<float> x_;
  std::vector<int32_t> tokens_;
  std::vector<uint32_t> positions_;
  const std::vector<uint32_t> pages_ = [] {
    std::vector<uint32_t> pages(kPages);
    for (uint32_t p = 0; p < kPages; ++p) pages[p] = kPages - 1 - p;
    return pages;
  }();
  Piece piece_;
  std::vector<std::string> faults_;
};

}  // namespace

Result<std::vector<std::string>> self_test(Device& device, const SelfTestOptions& options) {
  return SelfTest(device, options).run();
}

}  // namespace spillway::backend
