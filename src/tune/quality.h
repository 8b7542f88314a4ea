// How much two runs of a text differ: rows of logits compared pair by pair, and what that comes to. Nothing
// but the sums is kept. All logarithms are natural.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::tune {

// One position of the text.
struct RowDifference {
  bool identical = false;  // every bit
  bool finite = true;      // no NaN and no infinity in either
  double kl = 0;           // Kullback-Leibler divergence of `other` from `reference`, in nats, 0 or more
  bool same_top = false;   // both find the same token likeliest (the lowest of equal ones)
  // -log of the probability that each gives to the token that follows; only where one does.
  std::optional<double> reference_nll, other_nll;
};

// Requires: rows of one length, above 0; `next` within them.
RowDifference compare_rows(std::span<const float> reference, std::span<const float> other,
                           std::optional<uint32_t> next);

// The token with the highest logit, the lowest of equal ones; NaN is below all. Requires: one value or more.
uint32_t likeliest(std::span<const float> logits);

struct WithError {
  double value = 0;
  double error = 0;  // its standard error
};

class Quality {
 public:
  void add(const RowDifference& row);

  uint64_t rows() const { return rows_; }
  uint64_t identical_rows() const { return identical_; }
  uint64_t bad_rows() const { return bad_; }  // with NaN or infinities; in no other figure
  // Index of the first row that is not identical, of those added.
  std::optional<uint64_t> first_difference() const { return first_difference_; }

  WithError mean_kl() const { return kl_.mean(); }
  double max_kl() const { return max_kl_; }
  uint64_t max_kl_row() const { return max_kl_row_; }
  double top1() const;  // share of rows with the same likeliest token

  // exp of the mean of -log p. The errors are to first order: the value times the standard error of the mean.
  WithError reference_perplexity() const { return exp_of(reference_.mean()); }
  WithError other_perplexity() const { return exp_of(other_.mean()); }
  // Other over reference. Paired: of the differences position by position, so that what both find hard
  // cancels out.
  WithError perplexity_ratio() const { return exp_of(difference_.mean()); }
  uint64_t predicted_rows() const { return reference_.n; }

 private:
  // Mean and variance by Welford's update.
  struct Series {
    uint64_t n = 0;
    double average = 0, squares = 0;
    void add(double value);
    WithError mean() const;
  };
  static WithError exp_of(WithError mean);

  uint64_t rows_ = 0, identical_ = 0, bad_ = 0, same_top_ = 0;
  std::optional<uint64_t> first_difference_;
  Series kl_, reference_, other_, difference_;
  double max_kl_ = 0;
  uint64_t max_kl_row_ = 0;
};

// What a comparison must keep to.
struct QualityLimits {
  // A 4-bit file of a common model keeps to them, against its 16-bit original; a broken one does not.
  double max_kl = 0.1;  // mean, nats
  double min_top1 = 0.85;
  double max_perplexity_ratio = 1.05;
};

// What it falls short of: a sentence each, empty where it keeps to them. `must_be_equal`: the same file and
// the same types of KV cache, so every bit is promised to be the same.
std::vector<std::string> shortfalls(const Quality& quality, bool must_be_equal, const QualityLimits& limits);

}  // namespace spillway::tune
