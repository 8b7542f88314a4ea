// Speed of the quantized products: decode (one token; many expert-sized matrices that no cache holds) as a
// share of a plain streaming read of the same bytes, measured in turn with it; and prefill in multiplications
// a second.
//
//   product_bench [avx512|avx2] [seconds per figure] [type]
//
// One thread; start two for two cores (memory and clock are shared).
#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "backend/cpu/avx2_product.h"
#include "backend/cpu/avx512_product.h"
#include "base/tensor_type.h"

namespace spillway::cpu {
namespace {

using enum TensorType;
constexpr TensorType kTypes[] = {kQ4_K,   kQ6_K, kQ8_0, kQ4_0, kIQ4_NL, kMXFP4, kQ5_K,
                                 kIQ4_XS, kQ3_K, kQ2_K, kQ4_1, kQ5_0,   kQ5_1};

bool use_avx512 = true;
double seconds_each = 0.3;

void product(const Matrix& w, const Activations& x, TokenSet tokens, float* out, size_t stride,
             Scratch scratch) {
  (use_avx512 ? product_avx512 : product_avx2)(w, 0, w.groups(), x, tokens, out, stride, scratch);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Reads every byte once.
[[gnu::noinline]] uint64_t stream(const std::byte* p, size_t n) {
  const auto* v = reinterpret_cast<const uint64_t*>(p);
  uint64_t a[8] = {};
  for (size_t i = 0; i + 8 <= n / 8; i += 8)
    for (size_t k = 0; k < 8; ++k) a[k] |= v[i + k];
  return a[0] | a[1] | a[2] | a[3] | a[4] | a[5] | a[6] | a[7];
}

struct Input {
  std::vector<int8_t> q;
  std::vector<float> d;
  std::vector<int16_t> sums;
  Activations x;

  Input(TensorType type, uint32_t tokens, uint32_t cols) {
    const bool super = info(type).block_length == 256;
    q.assign(size_t{tokens} * cols, 3), d.assign(size_t{tokens} * cols / 32, 1.0f),
        sums.assign(size_t{tokens} * cols / 16, 48);
    x = {.kind = super ? ActivationKind::kQ256 : ActivationKind::kQ32,
         .tokens = tokens,
         .cols = cols,
         .q = q.data(),
         .d = d.data(),
         .sums = sums.data()};
  }
};

struct Bench {
  std::vector<std::byte> memory, scratch_memory;
  std::vector<float> out;
  Scratch scratch;

  Bench() : memory((size_t{256} << 20) + 64), scratch_memory(8 << 20), out(size_t{512} * 4096) {
    std::minstd_rand random(1);
    for (size_t i = 0; i < memory.size() / 4; ++i) {
      const auto v = static_cast<uint32_t>(random());
      std::memcpy(memory.data() + 4 * i, &v, 4);
    }
    auto at = reinterpret_cast<uintptr_t>(scratch_memory.data());
    const size_t skip = (64 - at % 64) % 64;
    scratch = {scratch_memory.data() + skip, scratch_memory.size() - skip};
  }

  // Best of the passes over all memory; expert after expert as a layer would.
  void decode(TensorType type, Layout layout) {
    const uint32_t rows = 512, cols = 1024;
    const size_t bytes = rows * row_bytes(type, cols), count = memory.size() / bytes;
    const Input input(type, 1, cols);
    double best = 1e9, best_stream = 1e9;
    uint64_t sink = 0;
    for (const double until = now() + seconds_each; now() < until || best == 1e9;) {
      double t = now();
      sink |= stream(memory.data(), count * bytes);
      best_stream = std::min(best_stream, now() - t);
      t = now();
      for (size_t i = 0; i < count; ++i)
        product({type, layout, rows, cols, memory.data() + i * bytes}, input.x, {nullptr, 1}, out.data(),
                rows, scratch);
      best = std::min(best, now() - t);
    }
    // in cache
    double cached = 1e9;
    for (int i = 0; i < 30; ++i) {
      const double t = now();
      product({type, layout, rows, cols, memory.data()}, input.x, {nullptr, 1}, out.data(), rows, scratch);
      cached = std::min(cached, now() - t);
    }
    const double all = static_cast<double>(count * bytes) / 1e9;
    fmt::print("  decode {:5.1f} GB/s of {:5.1f} ({:3.0f} %)  cached {:5.1f}{}", all / best,
               all / best_stream, 100 * best_stream / best, static_cast<double>(bytes) / 1e9 / cached,
               sink == 1 ? " " : "");
  }

  void prefill(TensorType type, Layout layout, uint32_t tokens) {
    const uint32_t rows = 512, cols = 1024;
    const Input input(type, tokens, cols);
    double best = 1e9;
    const size_t bytes = rows * row_bytes(type, cols), count = std::max<size_t>(1, 256 / tokens);
    for (const double until = now() + seconds_each / 4; now() < until || best == 1e9;) {
      const double t = now();
      for (size_t i = 0; i < count; ++i)
        product({type, layout, rows, cols, memory.data() + i * bytes}, input.x, {nullptr, tokens}, out.data(),
                rows, scratch);
      best = std::min(best, (now() - t) / static_cast<double>(count));
    }
    fmt::print("  {}:{:6.1f}", tokens, 1e-9 * rows * cols * tokens / best);
  }
};

}  // namespace
}  // namespace spillway::cpu

int main(int argc, char** argv) {
  using namespace spillway;
  using namespace spillway::cpu;
  if (argc > 1) use_avx512 = std::string_view(argv[1]) != "avx2";
  if (argc > 2) seconds_each = std::atof(argv[2]);
  Bench bench;
  for (const TensorType type : kTypes) {
    if (argc > 3 && info(type).name != argv[3]) continue;
    for (const Layout layout : {Layout::kInterleaved, Layout::kFile}) {
      fmt::print("{:6} {:11}", info(type).name, layout == Layout::kFile ? "file" : "interleaved");
      bench.decode(type, layout);
      fmt::print("   GMAC/s");
      for (const uint32_t tokens : {2u, 4u, 8u, 12u, 64u, 512u}) bench.prefill(type, layout, tokens);
      fmt::print("\n");
    }
  }
}
