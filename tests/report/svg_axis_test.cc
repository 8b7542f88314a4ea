#include "report/svg_axis.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spillway::report {
namespace {

std::string texts(const AxisScale& scale) {
  std::string all;
  for (const Tick& tick : scale.ticks()) all += tick.text + " ";
  return all;
}

TEST(Axis, TicksAreRoundNumbers) {
  EXPECT_EQ(texts(AxisScale({}, {3, 93}, 6)), "0 20 40 60 80 100 ");
  EXPECT_EQ(texts(AxisScale({}, {0.3, 0.94}, 6)), "0 0.2 0.4 0.6 0.8 1.0 ");
  EXPECT_EQ(texts(AxisScale({}, {60000}, 8)), "0 10,000 20,000 30,000 40,000 50,000 60,000 ");
  EXPECT_EQ(texts(AxisScale({.from_zero = false}, {1000.1, 1000.9}, 4)),
            "1000.0 1000.2 1000.4 1000.6 1000.8 1001.0 ");
  EXPECT_EQ(texts(AxisScale({}, {-7, 4}, 4)), "-10 -5 0 5 ");
  EXPECT_EQ(texts(AxisScale({.logarithmic = true}, {7, 300}, 8)), "5 10 20 50 100 200 500 ");
  EXPECT_EQ(texts(AxisScale({.logarithmic = true}, {1e-3, 1e9}, 6)), "0.001 0.1 10 1000 100000 1e+07 1e+09 ");
}

TEST(Axis, HoldsEveryValueThatCanBeDrawn) {
  for (const bool logarithmic : {false, true})
    for (const bool from_zero : {false, true})
      for (const std::vector<double>& values : {std::vector<double>{5},
                                                {1e15, 1e-15},
                                                {0.1, 0.1},
                                                {3, 700, 12},
                                                {1e-9, 2e-9},
                                                {999999, 1000001}}) {
        const AxisScale scale({.logarithmic = logarithmic, .from_zero = from_zero}, values, 6);
        ASSERT_FALSE(scale.empty());
        for (const double value : values) {
          EXPECT_GE(scale.at(value), -1e-6) << value;
          EXPECT_LE(scale.at(value), 1 + 1e-6) << value;
        }
        EXPECT_GE(scale.ticks().size(), 2u);
        EXPECT_LE(scale.ticks().size(), 9u);
        for (const Tick& tick : scale.ticks()) EXPECT_TRUE(std::isfinite(scale.at(tick.value)));
      }
}

TEST(Axis, WhatCannotBeDrawnIsPassedOver) {
  EXPECT_TRUE(AxisScale({}, {}, 6).empty());
  EXPECT_TRUE(AxisScale({}, {NAN, INFINITY, 1e308, -1e16}, 6).empty());
  EXPECT_TRUE(AxisScale({.logarithmic = true}, {0, -3}, 6).empty());
  const AxisScale scale({}, {1e308, 4}, 6);
  EXPECT_FALSE(scale.draws(1e308));
  EXPECT_TRUE(scale.draws(4));
  EXPECT_EQ(scale.ticks().back().text, "4");
}

TEST(Axis, NamedTicksStandBeyondTheNumbers) {
  EXPECT_EQ(texts(AxisScale({.high = 1, .named = {{1.25, "auto"}}}, {0, 0.5, 1.25}, 4)), "0 0.5 1.0 auto ");
  EXPECT_EQ(texts(AxisScale({.high = 1, .named = {{1.25, "auto"}}}, {0, 1.25}, 8)),
            "0 0.2 0.4 0.6 0.8 1.0 auto ");
}

}  // namespace
}  // namespace spillway::report
