#include "tune/quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/assert.h"

namespace spillway::tune {
namespace {

bool is_identical(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(
      a, b, [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); });
}

bool is_finite(std::span<const float> row) {
  return std::ranges::all_of(row, [](float x) { return std::isfinite(x); });
}

// log of the sum of the exponentials: log p(i) = row[i] - log_sum.
double log_sum(std::span<const float> row) {
  const double most = *std::ranges::max_element(row);
  double sum = 0;
  for (const float x : row) sum += std::exp(x - most);
  return most + std::log(sum);
}

}  // namespace

uint32_t likeliest(std::span<const float> logits) {
  SW_ASSERT(!logits.empty());
  uint32_t best = 0;
  for (uint32_t i = 1; i < logits.size(); ++i)
    if (logits[i] > logits[best] || (std::isnan(logits[best]) && !std::isnan(logits[i]))) best = i;
  return best;
}

RowDifference compare_rows(std::span<const float> reference, std::span<const float> other,
                           std::optional<uint32_t> next) {
  SW_ASSERT(!reference.empty() && reference.size() == other.size());
  SW_ASSERT(!next || *next < reference.size());
  RowDifference row;
  row.identical = is_identical(reference, other);
  row.finite = is_finite(reference) && (row.identical || is_finite(other));
  if (!row.finite) return row;
  const double p_sum = log_sum(reference), q_sum = row.identical ? p_sum : log_sum(other);
  if (next) {
    row.reference_nll = p_sum - reference[*next];
    row.other_nll = q_sum - other[*next];
  }
  row.same_top = row.identical || likeliest(reference) == likeliest(other);
  if (row.identical) return row;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double log_p = reference[i] - p_sum, log_q = other[i] - q_sum;
    row.kl += std::exp(log_p) * (log_p - log_q);
  }
  row.kl = std::max(row.kl, 0.0);  // rounding
  return row;
}

void Quality::Series::add(double value) {
  ++n;
  const double off = value - average;
  average += off / static_cast<double>(n);
  squares += off * (value - average);
}

WithError Quality::Series::mean() const {
  if (n < 2) return {average, 0};
  const auto count = static_cast<double>(n);
  return {average, std::sqrt(squares / (count - 1) / count)};
}

WithError Quality::exp_of(WithError mean) {
  const double value = std::exp(mean.value);
  return {value, value * mean.error};
}

void Quality::add(const RowDifference& row) {
  const uint64_t index = rows_++;
  if (row.identical)
    ++identical_;
  else if (!first_difference_)
    first_difference_ = index;
  if (!row.finite) {
    ++bad_;
    return;
  }
  kl_.add(row.kl);
  if (row.kl > max_kl_) max_kl_ = row.kl, max_kl_row_ = index;
  same_top_ += row.same_top;
  if (!row.reference_nll) return;
  reference_.add(*row.reference_nll);
  other_.add(*row.other_nll);
  difference_.add(*row.other_nll - *row.reference_nll);
}

double Quality::top1() const {
  return kl_.n == 0 ? 0 : static_cast<double>(same_top_) / static_cast<double>(kl_.n);
}

std::vector<std::string> shortfalls(const Quality& quality, bool must_be_equal, const QualityLimits& limits) {
  std::vector<std::string> found;
  if (must_be_equal) {
    if (const auto first = quality.first_difference())
      found.push_back(
          fmt::format("every bit must be equal, and {} of {} rows of logits differ, the first at token {}",
                      quality.rows() - quality.identical_rows(), quality.rows(), *first));
    return found;
  }
  if (quality.bad_rows() > 0)
    found.push_back(fmt::format("{} rows of logits hold NaN or infinity", quality.bad_rows()));
  // Compared so that a NaN falls short.
  if (const double kl = quality.mean_kl().value; !(kl <= limits.max_kl))
    found.push_back(
        fmt::format("its mean divergence, {:.4g} nats, is above --max-kl {:.4g}", kl, limits.max_kl));
  if (const double top1 = quality.top1(); !(top1 >= limits.min_top1))
    found.push_back(
        fmt::format("it finds the same token likeliest in {:.1f} % of rows, below --min-top1 {:.4g}",
                    100 * top1, limits.min_top1));
  if (const double ratio = quality.perplexity_ratio().value;
      quality.predicted_rows() > 0 && !(ratio <= limits.max_perplexity_ratio))
    found.push_back(
        fmt::format("its perplexity is {:.4g} times the reference's, above --max-ppl-ratio {:.4g}", ratio,
                    limits.max_perplexity_ratio));
  return found;
}

}  // namespace spillway::tune
