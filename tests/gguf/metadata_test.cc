#include "gguf/metadata.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "raw_file.h"

namespace spillway::gguf {
namespace {

TEST(Metadata, KeepsOrderAndReplaces) {
  Metadata map;
  map.set("b", uint32_t{1});
  map.set("a", "text");
  map.set("c", true);
  map.set("b", uint32_t{2});
  ASSERT_EQ(map.size(), 3u);
  EXPECT_EQ(map.entries()[0].key, "b");
  EXPECT_EQ(map.entries()[0].value, Value(uint32_t{2}));
  map.erase("b");
  EXPECT_EQ(map.entries()[0].key, "a");
  EXPECT_EQ(*map.require_string("a"), "text");
  EXPECT_EQ(*map.find_bool("c"), std::optional(true));
  EXPECT_EQ(map.find("b"), nullptr);
}

TEST(Metadata, UintTakesEveryWidthThatFits) {
  Metadata map;
  map.set("u8", uint8_t{200});
  map.set("i8", int8_t{100});
  map.set("u16", uint16_t{60000});
  map.set("i32", int32_t{7});
  map.set("u64", ~uint64_t{0});
  map.set("i64", int64_t{1} << 40);
  map.set("minus", int32_t{-1});
  map.set("minus8", int8_t{-1});
  map.set("float", 3.0f);
  map.set("text", "3");
  map.set("bool", true);
  EXPECT_EQ(*map.require_uint("u8", 255), 200u);
  EXPECT_EQ(*map.require_uint("i8", 255), 100u);
  EXPECT_EQ(*map.require_uint("u16", 65535), 60000u);
  EXPECT_EQ(*map.require_uint("i32", 7), 7u);
  EXPECT_EQ(*map.require_uint("u64", ~uint64_t{0}), ~uint64_t{0});
  EXPECT_EQ(*map.require_uint("i64", uint64_t{1} << 40), uint64_t{1} << 40);
  EXPECT_ERROR(map.require_uint("i32", 6), "key 'i32' is 7; it needs to be from 0 to 6");
  EXPECT_ERROR(map.require_uint("minus", 10), "is -1");
  EXPECT_ERROR(map.require_uint("minus8", 10), "is -1");
  EXPECT_ERROR(map.require_uint("float", 10), "has type float32; it needs an integer");
  EXPECT_ERROR(map.require_uint("text", 10), "has type string");
  EXPECT_ERROR(map.require_uint("bool", 10), "has type bool");
  EXPECT_ERROR(map.require_uint("context_length", 10), "key 'context_length' is missing");
  EXPECT_EQ(map.require_uint("none", 10).error().kind, Error::Kind::kNotFound);
  EXPECT_EQ(*map.find_uint("none", 10), std::nullopt);
  EXPECT_FALSE(map.find_uint("float", 10));
}

TEST(Metadata, Floats) {
  Metadata map;
  map.set("f32", 0.1f);
  map.set("f64", 0.1);
  map.set("int", int32_t{-3});
  map.set("uint", uint32_t{10000});
  map.set("nan", std::numeric_limits<float>::quiet_NaN());
  map.set("inf", std::numeric_limits<double>::infinity());
  map.set("text", "1.0");
  EXPECT_EQ(*map.require_float("f32"), double{0.1f});
  EXPECT_EQ(*map.require_float("f64"), 0.1);
  EXPECT_EQ(*map.require_float("int"), -3.0);
  EXPECT_EQ(*map.require_float("uint"), 10000.0);
  EXPECT_ERROR(map.require_float("nan"), "finite");
  EXPECT_ERROR(map.require_float("inf"), "finite");
  EXPECT_ERROR(map.require_float("text"), "a number");
  EXPECT_EQ(*map.find_float("none"), std::nullopt);
}

TEST(Metadata, BoolsAndStrings) {
  Metadata map;
  map.set("no", false);
  map.set("one", uint8_t{1});
  EXPECT_EQ(*map.find_bool("no"), std::optional(false));
  EXPECT_ERROR(map.find_bool("one"), "has type uint8; it needs a bool");
  EXPECT_ERROR(map.find_string("no"), "has type bool; it needs a string");
  EXPECT_ERROR(map.require_string("none"), "missing");
}

TEST(Metadata, ArrayElementTypesAreChecked) {
  Metadata map;
  map.set("tokenizer.ggml.scores", Array::of(std::vector<uint8_t>(300, 1)));
  map.set("tokenizer.ggml.token_type", Array::of(std::vector<uint8_t>(300, 1)));
  map.set("tokenizer.ggml.tokens", Array::of(std::vector<float>(300)));
  EXPECT_ERROR(map.find_float_array("tokenizer.ggml.scores"),
               "key 'tokenizer.ggml.scores' has type array of uint8; it needs an array of float32");
  EXPECT_ERROR(map.find_int_array("tokenizer.ggml.token_type"), "array of uint8; it needs an array of int32");
  EXPECT_ERROR(map.find_string_array("tokenizer.ggml.tokens"),
               "array of float32; it needs an array of string");
  map.set("f64", Array::of(std::vector<double>{1.0}));
  EXPECT_ERROR(map.find_float_array("f64"), "array of float64");
  map.set("scalar", 1.0f);
  EXPECT_ERROR(map.find_float_array("scalar"), "has type float32");
}

TEST(Metadata, Arrays) {
  Metadata map;
  map.set("f", Array::of(std::vector<float>{1.5f, -2.0f}));
  map.set("i", Array::of(std::vector<int32_t>{1, -2}));
  map.set("u", Array::of(std::vector<uint32_t>{1, 0x80000000u}));
  map.set("l", Array::of(std::vector<int64_t>{1, 2}));
  map.set("b", Array::of(std::vector<bool>{true, false, true}));
  map.set("s", Array::of(std::vector<std::string>{"", "one", "two"}));
  map.set("e", Array::of(std::vector<float>{}));
  EXPECT_EQ(**map.find_float_array("f"), (std::vector<float>{1.5f, -2.0f}));
  EXPECT_TRUE((*map.find_float_array("e"))->empty());
  EXPECT_EQ(**map.find_int_array("i"), (std::vector<int32_t>{1, -2}));
  EXPECT_EQ(**map.find_int_array("l"), (std::vector<int32_t>{1, 2}));
  EXPECT_ERROR(map.find_int_array("u"), "2147483648 at index 1");
  EXPECT_EQ(**map.find_bool_array("b"), (std::vector<bool>{true, false, true}));
  const StringArray& strings = **map.find_string_array("s");
  ASSERT_EQ(strings.size(), 3u);
  EXPECT_EQ(strings[0], "");
  EXPECT_EQ(strings[2], "two");
  EXPECT_EQ(*map.find_string_array("none"), nullptr);
  EXPECT_ERROR(map.require_string_array("none"), "missing");
  EXPECT_EQ(*map.find_float_array("none"), std::nullopt);
}

TEST(Metadata, ScalarOrPerLayer) {
  Metadata map;
  map.set("one", uint32_t{64});
  map.set("three", Array::of(std::vector<int32_t>{64, 0, 128}));
  map.set("minus", Array::of(std::vector<int32_t>{64, -1, 128}));
  map.set("text", Array::of(std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(**map.find_uint_or_array("one", 3, 1000), (std::vector<uint64_t>{64, 64, 64}));
  EXPECT_EQ(**map.find_uint_or_array("three", 3, 1000), (std::vector<uint64_t>{64, 0, 128}));
  EXPECT_ERROR(map.find_uint_or_array("three", 2, 1000), "holds 3 values; it needs 2");
  EXPECT_ERROR(map.find_uint_or_array("three", 3, 127), "holds 128 at index 2");
  EXPECT_ERROR(map.find_uint_or_array("minus", 3, 1000), "holds -1 at index 1");
  EXPECT_ERROR(map.find_uint_or_array("text", 3, 1000), "array of string");
  EXPECT_ERROR(map.find_uint_or_array("one", 3, 63), "is 64");
  EXPECT_EQ(*map.find_uint_or_array("none", 3, 63), std::nullopt);
}

TEST(Metadata, ViewsSurviveAMove) {
  Metadata map;
  map.set("short", "abc");
  map.set("strings", Array::of(std::vector<std::string>{"x", "y"}));
  const std::string_view text = **map.find_string("short");
  const StringArray* strings = *map.find_string_array("strings");
  const Metadata moved = std::move(map);
  EXPECT_EQ(text, "abc");
  EXPECT_EQ((*strings)[1], "y");
  EXPECT_EQ(moved.size(), 2u);
}

TEST(Metadata, TextForPeople) {
  EXPECT_EQ(Value(uint32_t{5}).to_text(), "5");
  EXPECT_EQ(Value(int8_t{-5}).to_text(), "-5");
  EXPECT_EQ(Value(0.1f).to_text(), "0.1");
  EXPECT_EQ(Value("a\nb").to_text(), "'a\\x0ab'");
  EXPECT_EQ(Value(Array::of(std::vector<int32_t>{1, 2, 3})).to_text(2), "[1, 2, ... 3 in all]");
  const Value nested(
      Array::of(std::vector<Array>{Array::of(std::vector<uint8_t>{1}), Array::of(std::vector<uint8_t>{})}));
  EXPECT_EQ(nested.to_text(), "[[1], []]");
  EXPECT_EQ(nested.type_name(), "array of arrays of uint8");
}

}  // namespace
}  // namespace spillway::gguf
