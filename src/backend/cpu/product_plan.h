// Several matrix products cut into tasks for a pool: a task is a few row groups of one product times a tile
// of tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/kernels.h"
#include "sys/thread_pool.h"

namespace spillway::cpu {

// One product: out row i belongs to the i-th token of `tokens`. The pointers outlive the plan.
struct Product {
  const Matrix* weight = nullptr;
  Activations x;
  TokenSet tokens;
  float* out = nullptr;
  size_t out_stride = 0;
  const float* bias = nullptr;  // (weight->rows), or null
};

class ProductPlan {
 public:
  // Room for `products`, so that add() and cut() need not allocate.
  void reserve(size_t products);
  // Forgets the products; keeps the memory.
  void clear();
  void add(const Product& product) { products_.push_back(product); }
  bool empty() const { return products_.empty(); }

  // Cuts the products into tasks for `threads` threads. Call after the last add() and before run().
  void cut(uint32_t threads);

  // Runs tasks until none is left. Each thread of a region calls it, with scratch of its own.
  void run(const Kernels& kernels, Scratch scratch);

 private:
  void run_task(const Kernels& kernels, Scratch scratch, uint64_t task) const;

  std::vector<Product> products_;
  std::vector<uint64_t> first_task_;   // of each product, and the total at the end
  std::vector<uint32_t> task_groups_;  // row groups of a task, per product
  sys::TaskCounter counter_;
};

}  // namespace spillway::cpu
