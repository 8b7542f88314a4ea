// Kernels::interleave of every instruction set against numerics::interleave, byte for byte.
#include <gtest/gtest.h>

#include <random>

#include "backend/cpu/kernels.h"
#include "numerics/layout.h"

namespace spillway::cpu {
namespace {

TEST(Interleave, EqualsTheDefinition) {
  std::mt19937_64 random(5);
  for (uint32_t set = 0; set <= static_cast<uint32_t>(best_instruction_set()); ++set)
    for (uint32_t id = 0; id < 40; ++id) {
      const TensorTypeInfo* type = find_tensor_type(id);
      if (type == nullptr) continue;
      for (const uint64_t rows : {1, 15, 16, 17, 40})
        for (const uint64_t blocks : {1, 2, 3, 7, 8, 18}) {
          const uint64_t cols = blocks * type->block_length;
          std::vector<std::byte> file(rows * row_bytes(type->type, cols));
          for (std::byte& byte : file) byte = static_cast<std::byte>(random());
          const uint64_t bytes = numerics::interleaved_bytes(type->type, rows, cols);
          std::vector<std::byte> expected(bytes), got(bytes, std::byte{0xaa});
          numerics::interleave(type->type, rows, cols, file.data(), expected.data());
          kernels(static_cast<InstructionSet>(set))
              .interleave(type->type, rows, cols, file.data(), got.data());
          ASSERT_EQ(got, expected) << type->name << " set " << set << " rows " << rows << " cols " << cols;
        }
    }
}

}  // namespace
}  // namespace spillway::cpu
