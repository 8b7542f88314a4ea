#include "base/tensor_type.h"

#include "base/checked.h"

namespace spillway {
namespace {

TEST(TensorType, NamesAndIdsAgree) {
  EXPECT_EQ(find_tensor_type("Q4_K")->type, TensorType::kQ4_K);
  EXPECT_EQ(find_tensor_type(39u)->name, "MXFP4");
  EXPECT_EQ(tensor_type_name(39), "MXFP4");
  EXPECT_EQ(tensor_type_name(16), "IQ2_XXS");
  EXPECT_EQ(tensor_type_name(42), "Q2_0");
  EXPECT_EQ(tensor_type_name(43), "unknown");
  EXPECT_EQ(tensor_type_name(4000), "unknown");
  EXPECT_EQ(find_tensor_type(16u), nullptr);
}

TEST(TensorType, RowBytes) {
  EXPECT_EQ(row_bytes(TensorType::kQ4_K, 512), 288u);
  EXPECT_EQ(row_bytes(TensorType::kMXFP4, 64), 34u);
}

TEST(Checked, Wraps) {
  EXPECT_FALSE(checked_mul(uint64_t{1} << 63, 2));
  EXPECT_FALSE(checked_add(~uint64_t{0}, 1));
  EXPECT_FALSE(checked_round_up(~uint64_t{0} - 1, 32));
  EXPECT_EQ(checked_round_up(65, 32), 96u);
}

}  // namespace
}  // namespace spillway
