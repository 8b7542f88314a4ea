#include "numerics/formats.h"

#include <gtest/gtest.h>

#include <set>

#include "golden.h"
#include "numerics/float_bits.h"

namespace spillway::numerics {
namespace {

// The peer's bits, but for our flush and for the sign of zeros in F16 and BF16.
TEST(Formats, DequantizeEqualsPeer) {
  std::set<TensorType> seen;
  for (const GoldenCase& golden : read_golden_cases()) {
    seen.insert(golden.type);
    std::vector<float> values(golden.values.size());
    ASSERT_EQ(golden.raw.size(), row_bytes(golden.type, values.size()));
    dequantize_row(golden.type, golden.raw.data(), values.size(), values.data());
    for (size_t i = 0; i < values.size(); ++i) {
      const bool flushed = golden.type == TensorType::kBF16 || golden.type == TensorType::kMXFP4;
      const float wanted = flushed ? flush(golden.values[i]) : golden.values[i];
      if (wanted == 0)
        ASSERT_EQ(values[i], 0.0f) << info(golden.type).name << " " << golden.note << " value " << i;
      else
        ASSERT_EQ(bits_of(values[i]), bits_of(wanted))
            << info(golden.type).name << " " << golden.note << " value " << i;
    }
  }
  EXPECT_EQ(seen.size(), 15u);  // all but F32
}

}  // namespace
}  // namespace spillway::numerics
