#include "engine/cache_size.h"

#include <gtest/gtest.h>

namespace spillway::engine {
namespace {

TEST(CacheSize, FourWaysToSayIt) {
  EXPECT_EQ(parse_cache_size("auto")->unit, CacheSize::Unit::kAuto);
  EXPECT_TRUE(parse_cache_size("0")->is_off());
  EXPECT_FALSE(parse_cache_size("auto")->is_off());
  EXPECT_EQ(parse_cache_size("1.5")->bytes(100, 1 << 20), 3u << 19);
  EXPECT_EQ(parse_cache_size("25%")->bytes(128, 1000), 32000u);
  EXPECT_EQ(parse_cache_size("64s")->bytes(128, 1000), 64000u);
  EXPECT_EQ(parse_cache_size("200s")->bytes(128, 1000), 128000u) << "no more than there is";
  for (const char* text : {"auto", "0", "1.5", "25%", "64s"}) EXPECT_EQ(parse_cache_size(text)->text(), text);
}

TEST(CacheSize, RefusesWhatIsNone) {
  for (const char* text : {"", "%", "s", "-1", "12x", "1.5s", "101%", "nan", "inf", "1e10", "0x10", "auto "})
    EXPECT_FALSE(parse_cache_size(text)) << text;
}

}  // namespace
}  // namespace spillway::engine
