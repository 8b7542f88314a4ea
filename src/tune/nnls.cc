#include "tune/nnls.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/assert.h"

namespace spillway::tune {
namespace {

constexpr double kOutlier = 4.0;    // spreads
constexpr int kReweightings = 3;    // the weights settle in two or three
constexpr size_t kResamples = 200;  // the 2.5 % quantile is then the fifth value from the end
constexpr double kMadToSigma = 1.4826;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct NormalSums {
  Eigen::Matrix2d gram = Eigen::Matrix2d::Zero();
  Eigen::Vector2d moment = Eigen::Vector2d::Zero();

  void add(const FitRow& row, double weight) {
    const Eigen::Vector2d x(row.x[0], row.x[1]);
    gram += weight * x * x.transpose();
    moment += weight * row.y * x;
  }
  void add(const NormalSums& other) {
    gram += other.gram;
    moment += other.moment;
  }
  Eigen::VectorXd solve(size_t columns) const {
    const auto n = static_cast<Eigen::Index>(columns);
    return solve_nnls(gram.topLeftCorner(n, n), moment.head(n));
  }
};

double predicted(const FitRow& row, const Eigen::VectorXd& x) {
  double sum = 0;
  for (Eigen::Index i = 0; i < x.size(); ++i) sum += row.x[static_cast<size_t>(i)] * x[i];
  return sum;
}

}  // namespace

Eigen::VectorXd solve_nnls(const Eigen::MatrixXd& gram, const Eigen::VectorXd& moment) {
  const Eigen::Index n = gram.rows();
  SW_ASSERT(gram.cols() == n && moment.size() == n);
  // Columns are scaled to length 1: bytes and counts differ by 10^7.
  Eigen::VectorXd scale(n);
  for (Eigen::Index i = 0; i < n; ++i) scale[i] = gram(i, i) > 0 ? 1.0 / std::sqrt(gram(i, i)) : 0.0;
  const Eigen::MatrixXd a = scale.asDiagonal() * gram * scale.asDiagonal();
  const Eigen::VectorXd b = scale.asDiagonal() * moment;
  constexpr double kNothing = 1e-10;
  Eigen::VectorXd x = Eigen::VectorXd::Zero(n);
  std::vector<Eigen::Index> active;  // those that may be above 0
  const Eigen::Index most_rounds = 3 * n + 3;
  for (Eigen::Index round = 0; round < most_rounds; ++round) {
    const Eigen::VectorXd slope = b - a * x;
    Eigen::Index next = -1;
    for (Eigen::Index i = 0; i < n; ++i)
      if (std::find(active.begin(), active.end(), i) == active.end() && slope[i] > kNothing &&
          (next < 0 || slope[i] > slope[next]))
        next = i;
    if (next < 0) break;
    active.push_back(next);
    while (!active.empty()) {
      const auto m = static_cast<Eigen::Index>(active.size());
      Eigen::MatrixXd part(m, m);
      Eigen::VectorXd right(m);
      for (Eigen::Index i = 0; i < m; ++i) {
        right[i] = b[active[static_cast<size_t>(i)]];
        for (Eigen::Index j = 0; j < m; ++j)
          part(i, j) = a(active[static_cast<size_t>(i)], active[static_cast<size_t>(j)]);
      }
      const Eigen::VectorXd solved = part.ldlt().solve(right);
      // As far towards it as nothing gets negative; what stops it leaves.
      double step = 1.0;
      for (Eigen::Index i = 0; i < m; ++i) {
        const double from = x[active[static_cast<size_t>(i)]];
        if (solved[i] <= 0) step = std::min(step, from <= 0 ? 0.0 : from / (from - solved[i]));
      }
      for (Eigen::Index i = 0; i < m; ++i) {
        double& value = x[active[static_cast<size_t>(i)]];
        value += step * (solved[i] - value);
      }
      if (step == 1.0) break;
      std::erase_if(active, [&](Eigen::Index i) {
        if (x[i] > kNothing) return false;
        x[i] = 0;
        return true;
      });
    }
  }
  return scale.asDiagonal() * x;
}

Fit fit_rows(std::span<const FitRow> rows, size_t columns) {
  SW_ASSERT(columns >= 1 && columns <= kMostColumns && !rows.empty());
  std::vector<double> weights;
  for (const FitRow& row : rows) weights.push_back(1.0 / (row.y * row.y));
  Eigen::VectorXd x;
  Fit fit{.rows = rows.size()};
  for (int pass = 0; pass <= kReweightings; ++pass) {
    NormalSums sums;
    for (size_t i = 0; i < rows.size(); ++i) sums.add(rows[i], weights[i]);
    x = sums.solve(columns);
    std::vector<double> errors;
    for (const FitRow& row : rows) errors.push_back(std::abs(predicted(row, x) / row.y - 1));
    fit.spread = kMadToSigma * median(errors);
    if (pass == kReweightings) break;
    const double most = std::max(kOutlier * fit.spread, 1e-6);
    for (size_t i = 0; i < rows.size(); ++i)
      weights[i] = std::min(1.0, most / std::max(errors[i], 1e-12)) / (rows[i].y * rows[i].y);
  }

  std::vector<NormalSums> blocks;
  uint32_t last = ~uint32_t{0};
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].block != last) blocks.emplace_back();
    last = rows[i].block;
    blocks.back().add(rows[i], weights[i]);
  }
  std::array<std::vector<double>, kMostColumns> found;
  std::mt19937_64 random(rows.size());
  for (size_t k = 0; k < kResamples; ++k) {
    NormalSums sums;
    for (size_t i = 0; i < blocks.size(); ++i) sums.add(blocks[random() % blocks.size()]);
    const Eigen::VectorXd resampled = sums.solve(columns);
    for (size_t i = 0; i < columns; ++i) found[i].push_back(resampled[static_cast<Eigen::Index>(i)]);
  }
  for (size_t i = 0; i < columns; ++i) {
    std::sort(found[i].begin(), found[i].end());
    fit.of[i] = {x[static_cast<Eigen::Index>(i)], found[i][kResamples / 40],
                 found[i][kResamples - 1 - kResamples / 40]};
  }
  return fit;
}

Coefficient fit_ratio(std::span<const RatioRow> rows) {
  SW_ASSERT(!rows.empty());
  const auto errors = [&](double ratio) {
    std::vector<double> all;
    for (const RatioRow& row : rows) all.push_back(std::abs(row.num - ratio * row.den));
    return all;
  };
  std::vector<double> weights(rows.size(), 1.0);
  double ratio = 0;
  for (int pass = 0; pass <= kReweightings; ++pass) {
    double up = 0, down = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      up += weights[i] * rows[i].num * rows[i].den;
      down += weights[i] * rows[i].den * rows[i].den;
    }
    ratio = down > 0 ? up / down : 0;
    if (pass == kReweightings) break;
    const std::vector<double> error = errors(ratio);
    const double most = std::max(kOutlier * kMadToSigma * median(error), 1e-9);
    for (size_t i = 0; i < rows.size(); ++i) weights[i] = std::min(1.0, most / std::max(error[i], 1e-12));
  }
  struct Part {
    double up = 0, down = 0;
  };
  std::vector<Part> blocks;
  uint32_t last = ~uint32_t{0};
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].block != last) blocks.emplace_back();
    last = rows[i].block;
    blocks.back().up += weights[i] * rows[i].num * rows[i].den;
    blocks.back().down += weights[i] * rows[i].den * rows[i].den;
  }
  std::vector<double> found;
  std::mt19937_64 random(rows.size());
  for (size_t k = 0; k < kResamples; ++k) {
    Part sum;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Part& block = blocks[random() % blocks.size()];
      sum.up += block.up, sum.down += block.down;
    }
    found.push_back(sum.down > 0 ? sum.up / sum.down : 0);
  }
  std::sort(found.begin(), found.end());
  return {ratio, found[kResamples / 40], found[kResamples - 1 - kResamples / 40]};
}

bool are_collinear(std::span<const FitRow> rows) {
  NormalSums sums;
  for (const FitRow& row : rows) sums.add(row, 1.0 / (row.y * row.y));
  const double product = sums.gram(0, 0) * sums.gram(1, 1);
  // The share of one column that the other doesn't explain: below 1 % of its length, noise decides.
  return product <= 0 || 1.0 - sums.gram(0, 1) * sums.gram(0, 1) / product < 1e-4;
}

}  // namespace spillway::tune
