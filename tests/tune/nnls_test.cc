#include "tune/nnls.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <random>

namespace spillway::tune {
namespace {

// By brute force: of all subsets of columns, the least squares solution that is not negative and fits best.
double best_by_subsets(const Eigen::MatrixXd& a, const Eigen::VectorXd& b) {
  const Eigen::Index n = a.cols();
  double best = b.squaredNorm();
  for (Eigen::Index set = 1; set < Eigen::Index{1} << n; ++set) {
    std::vector<Eigen::Index> columns;
    for (Eigen::Index i = 0; i < n; ++i)
      if ((set >> i & 1) != 0) columns.push_back(i);
    Eigen::MatrixXd part(a.rows(), static_cast<Eigen::Index>(columns.size()));
    for (size_t i = 0; i < columns.size(); ++i) part.col(static_cast<Eigen::Index>(i)) = a.col(columns[i]);
    const Eigen::MatrixXd gram = part.transpose() * part;
    const Eigen::VectorXd x = gram.inverse() * (part.transpose() * b);
    if ((x.array() >= 0).all()) best = std::min(best, (part * x - b).squaredNorm());
  }
  return best;
}

TEST(Nnls, IsTheBestThatIsNotNegative) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 200; ++trial) {
    const Eigen::Index n = 1 + trial % 4;
    Eigen::MatrixXd a(12, n);
    Eigen::VectorXd b(12);
    for (Eigen::Index i = 0; i < 12; ++i) {
      b[i] = normal(random);
      for (Eigen::Index j = 0; j < n; ++j) a(i, j) = normal(random) * (j == 1 ? 1e6 : 1.0);
    }
    const Eigen::VectorXd x = solve_nnls(a.transpose() * a, a.transpose() * b);
    EXPECT_TRUE((x.array() >= 0).all());
    EXPECT_NEAR((a * x - b).squaredNorm(), best_by_subsets(a, b), 1e-8);
  }
}

TEST(Nnls, GivesNothingToAnEmptyColumn) {
  const Eigen::VectorXd x = solve_nnls(Eigen::Matrix2d{{4, 0}, {0, 0}}, Eigen::Vector2d{8, 0});
  EXPECT_EQ(x[0], 2);
  EXPECT_EQ(x[1], 0);
}

std::vector<FitRow> line(double rate, double fixed, double noise, double outliers) {
  std::mt19937 random(4);
  std::normal_distribution<double> normal(0, noise);
  std::vector<FitRow> rows;
  for (uint32_t i = 0; i < 600; ++i) {
    const double n = 1 + i % 7;
    double y = (n * rate + fixed) * std::exp(normal(random));
    if (random() % 1000 < 1000 * outliers) y *= 20;
    rows.push_back({.x = {n, 1}, .y = y, .block = i / 10});
  }
  return rows;
}

TEST(FitRows, FindsRateAndFixedCostThroughOutliers) {
  const Fit fit = fit_rows(line(50, 20, 0.05, 0.02), 2);
  EXPECT_NEAR(fit.of[0].value, 50, 2);
  EXPECT_NEAR(fit.of[1].value, 20, 4);
  EXPECT_LT(fit.of[0].low, 50);
  EXPECT_GT(fit.of[0].high, 50);
  EXPECT_NEAR(fit.spread, 0.05, 0.01);
}

TEST(FitRows, KnowsWhatCanNotBeToldApart) {
  std::vector<FitRow> rows = line(50, 20, 0.05, 0);
  EXPECT_FALSE(are_collinear(rows));
  for (FitRow& row : rows) row.x[1] = 3 * row.x[0];
  EXPECT_TRUE(are_collinear(rows));
}

TEST(FitRatio, IsTheMeanOfMostRows) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal(7, 0.5);
  std::vector<RatioRow> rows;
  for (uint32_t i = 0; i < 400; ++i)
    rows.push_back({.num = i % 50 == 0 ? 500 : normal(random), .block = i / 10});
  const Coefficient mean = fit_ratio(rows);
  EXPECT_NEAR(mean.value, 7, 0.2);
  EXPECT_LT(mean.low, mean.value);
  EXPECT_GT(mean.high, mean.value);
}

}  // namespace
}  // namespace spillway::tune
