// Least squares with coefficients that can't be negative, for times that are sums of few terms: a rate and a
// fixed cost or two.
//
// Rows are weighted by 1 / y^2, so that what counts is the relative error and a prompt's millisecond does not
// outweigh a token's microseconds; rows whose error is beyond 4 spreads count less (Huber's weights), since a
// thread that the system put aside says nothing of the rate. Intervals are bootstrapped over blocks of rows:
// rows of one stretch of a run share what disturbed it, and by themselves they would look more certain.
#pragma once

#include <Eigen/Core>
#include <array>
#include <cstdint>
#include <span>

namespace spillway::tune {

// Of |A x - b| by x >= 0, from A'A and A'b (Lawson and Hanson's active set). Columns that say nothing get 0.
Eigen::VectorXd solve_nnls(const Eigen::MatrixXd& gram, const Eigen::VectorXd& moment);

inline constexpr size_t kMostColumns = 2;

struct FitRow {
  std::array<double, kMostColumns> x{};
  double y = 0;  // above 0
  uint32_t block = 0;
};

struct Coefficient {
  double value = 0, low = 0, high = 0;  // 95 %
};

struct Fit {
  std::array<Coefficient, kMostColumns> of;
  double spread = 0;  // of the relative errors, their median times 1.48
  size_t rows = 0;
};

// Requires: 1 <= columns <= kMostColumns, rows not empty.
Fit fit_rows(std::span<const FitRow> rows, size_t columns);

// num / den for all rows at once, rows with a large den counting more (least squares of num = f den); a mean
// where den is 1. Outliers and intervals as above. Requires: rows not empty.
struct RatioRow {
  double num = 0, den = 1;
  uint32_t block = 0;
};
Coefficient fit_ratio(std::span<const RatioRow> rows);

// Two columns that are nearly multiples of each other: only their sum can be found.
bool are_collinear(std::span<const FitRow> rows);

}  // namespace spillway::tune
