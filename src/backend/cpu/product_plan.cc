#include "backend/cpu/product_plan.h"

#include <algorithm>

#include "base/checked.h"

namespace spillway::cpu {
namespace {

// Tokens of one task. Their int8 activations (128 x 2048) stay in a second-level cache of 512 KB while the
// weights pass.
constexpr uint32_t kTokenTile = 128;

// Weight bytes of one task of a few tokens. Long runs suit the memory's prefetchers (decode of a Q8_0 model
// gained 1.2 x over tasks of 32 KB); the balance between threads keeps the runs of small matrices shorter.
constexpr uint64_t kTaskBytes = 256 << 10;

// Row groups of one task of many tokens: 64 rows of unpacked weights, 64 KB at 1,024 columns.
constexpr uint32_t kTileGroups = 4;

uint32_t choose_task_groups(const Product& product, uint32_t threads) {
  const Matrix& w = *product.weight;
  const uint32_t groups = w.groups();
  if (product.tokens.n >= 8) return std::min(kTileGroups, groups);
  const uint64_t group_bytes = kGroupRows * row_bytes(w.type, w.cols);
  const uint64_t by_size = ceil_div(kTaskBytes, group_bytes);
  const uint64_t by_balance = std::max<uint64_t>(1, groups / (2 * threads));
  return static_cast<uint32_t>(std::min(by_size, by_balance));
}

uint32_t tiles(const Product& product) {
  return static_cast<uint32_t>(ceil_div(product.tokens.n, kTokenTile));
}

}  // namespace

void ProductPlan::reserve(size_t products) {
  products_.reserve(products);
  first_task_.reserve(products + 1);
  task_groups_.reserve(products);
}

void ProductPlan::clear() {
  products_.clear();
  first_task_.clear();
  task_groups_.clear();
}

void ProductPlan::cut(uint32_t threads) {
  uint64_t tasks = 0;
  for (const Product& product : products_) {
    const uint32_t groups = choose_task_groups(product, threads);
    first_task_.push_back(tasks);
    task_groups_.push_back(groups);
    tasks += ceil_div(product.weight->groups(), groups) * tiles(product);
  }
  first_task_.push_back(tasks);
  counter_.reset(tasks);
}

void ProductPlan::run(const Kernels& kernels, Scratch scratch) {
  for (auto range = counter_.next(); !range.empty(); range = counter_.next())
    run_task(kernels, scratch, range.begin);
}

void ProductPlan::run_task(const Kernels& kernels, Scratch scratch, uint64_t task) const {
  const size_t p = std::upper_bound(first_task_.begin(), first_task_.end(), task) - first_task_.begin() - 1;
  const Product& product = products_[p];
  const Matrix& w = *product.weight;

  // Row groups vary fastest, so that a tile of activations stays in the cache while all its weights pass.
  const uint64_t chunks = ceil_div(w.groups(), task_groups_[p]);
  const uint64_t chunk = (task - first_task_[p]) % chunks;
  const uint32_t tile = static_cast<uint32_t>((task - first_task_[p]) / chunks);
  const uint32_t group_begin = static_cast<uint32_t>(chunk * task_groups_[p]);
  const uint32_t group_end = std::min(group_begin + task_groups_[p], w.groups());
  const uint32_t first = tile * kTokenTile;
  const uint32_t n = std::min(kTokenTile, product.tokens.n - first);

  Activations x = product.x;
  TokenSet tokens{.index = product.tokens.index, .n = n};
  if (tokens.index) {
    tokens.index += first;
  } else {
    x = x.from(first);
  }
  float* out = product.out + first * product.out_stride;
  kernels.product(w, group_begin, group_end, x, tokens, out, product.out_stride, scratch);

  if (product.bias == nullptr) return;
  const uint32_t row_begin = group_begin * kGroupRows;
  const uint32_t row_end = std::min(group_end * kGroupRows, w.rows);
  for (uint32_t i = 0; i < n; ++i)
    kernels.add(out + i * product.out_stride + row_begin, product.bias + row_begin, row_end - row_begin);
}

}  // namespace spillway::cpu
