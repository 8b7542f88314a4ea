#include "support/exact_forward.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "engine/model_files.h"
#include "model/describe.h"
#include "numerics/formats.h"

namespace spillway::test_support {
namespace {

using model::Weight;

// (rows, width) in double.
struct Rows {
  size_t width = 0;
  std::vector<double> values;
  Rows(size_t n, size_t w) : width(w), values(n * w) {}
  size_t size() const { return values.size() / width; }
  double* operator[](size_t row) { return values.data() + row * width; }
  const double* operator[](size_t row) const { return values.data() + row * width; }
};

double silu(double x) { return x / (1 + std::exp(-x)); }

class Forward {
 public:
  Forward(const engine::ModelFiles& files, const model::Description& model) : files_(files), model_(model) {}

  Result<ExactLogits> run(std::span<const int32_t> tokens) {
    ExactLogits result{.gaps = std::vector<double>(tokens.size(), std::numeric_limits<double>::infinity())};
    gaps_ = &result.gaps;
    const std::vector<float> embedding = read(model_.embedding);
    Rows x(tokens.size(), model_.hidden);
    for (size_t t = 0; t < tokens.size(); ++t)
      std::copy_n(embedding.data() + size_t(tokens[t]) * model_.hidden, model_.hidden, x[t]);
    for (const model::Layer& layer : model_.layers) {
      add(x, attention(layer.attention, norm(x, layer.attention_norm)));
      const Rows h = norm(x, layer.ffn_norm);
      if (const auto* dense = std::get_if<model::DenseFfn>(&layer.ffn))
        add(x, feed_forward(h, dense->gate, dense->up, dense->down));
      else
        add(x, mixture(h, std::get<model::MoeFfn>(layer.ffn)));
    }
    result.rows = product(norm(x, model_.output_norm), model_.output).values;
    if (error_) return std::unexpected(*error_);
    return result;
  }

 private:
  // All values of a weight, dequantized; zeros and a note of the error where it can't be read.
  std::vector<float> read(const Weight& weight) {
    std::vector<float> values(size_t{weight.rows} * weight.cols);
    std::vector<std::byte> bytes(weight.bytes());
    if (auto done = files_.files[weight.shard]->read_at(weight.offset, bytes); !done) {
      error_ = done.error();
      return values;
    }
    const size_t row = row_bytes(weight.type, weight.cols);
    for (size_t r = 0; r < weight.rows; ++r)
      numerics::dequantize_row(weight.type, bytes.data() + r * row, weight.cols,
                               values.data() + r * weight.cols);
    return values;
  }

  static void add(Rows& to, const Rows& what) {
    for (size_t i = 0; i < to.values.size(); ++i) to.values[i] += what.values[i];
  }

  Rows product(const Rows& x, const Weight& weight, const Weight& bias = {}) {
    const std::vector<float> w = read(weight);
    Rows y(x.size(), weight.rows);
    std::vector<double> row(weight.cols);
    for (size_t r = 0; r < weight.rows; ++r) {
      std::copy_n(w.data() + r * weight.cols, weight.cols, row.data());
      size_t t = 0;
      for (; t + 4 <= x.size(); t += 4) {  // four sums at a time: each is a chain of additions
        double sum[4] = {};
        for (size_t i = 0; i < weight.cols; ++i)
          for (size_t k = 0; k < 4; ++k) sum[k] += row[i] * x[t + k][i];
        for (size_t k = 0; k < 4; ++k) y[t + k][r] = sum[k];
      }
      for (; t < x.size(); ++t) y[t][r] = std::inner_product(row.begin(), row.end(), x[t], 0.0);
    }
    if (bias) add_to_each(y, read(bias));
    return y;
  }

  static void add_to_each(Rows& y, const std::vector<float>& bias) {
    for (size_t t = 0; t < y.size(); ++t)
      for (size_t i = 0; i < y.width; ++i) y[t][i] += bias[i];
  }

  // Of pieces of `length` values of each row, with one weight of that length.
  void norm_pieces(Rows& x, size_t length, const Weight& weight) {
    const std::vector<float> w = read(weight);
    for (size_t at = 0; at < x.values.size(); at += length) {
      double* piece = x.values.data() + at;
      const double mean = std::inner_product(piece, piece + length, piece, 0.0) / static_cast<double>(length);
      const double scale = 1 / std::sqrt(mean + model_.norm_epsilon);
      for (size_t i = 0; i < length; ++i) piece[i] *= scale * w[i];
    }
  }
  Rows norm(const Rows& x, const Weight& weight) {
    Rows y = x;
    norm_pieces(y, x.width, weight);
    return y;
  }

  // Angle per position of each pair. YaRN as its paper has it: arXiv 2309.00071, section 3.
  std::vector<double> frequencies(const model::Rope& rope) {
    const numerics::RopeParams& p = rope.params;
    const std::vector<float> factors =
        rope.frequency_factors ? read(rope.frequency_factors) : std::vector<float>();
    std::vector<double> result;
    for (uint32_t i = 0; i < p.rope_length / 2; ++i) {
      double f = std::pow(p.base, -2.0 * i / p.rope_length);
      if (!factors.empty()) f /= factors[i];
      if (p.scaling == numerics::RopeScaling::kLinear) f /= p.factor;
      if (p.scaling == numerics::RopeScaling::kYarn) {
        const auto dimension = [&](double turns) {
          return p.rope_length * std::log(p.original_context / (turns * 2 * std::numbers::pi)) /
                 (2 * std::log(p.base));
        };
        const double low = std::max(0.0, std::floor(dimension(p.beta_fast)));
        const double high = std::min(p.rope_length - 1.0, std::ceil(dimension(p.beta_slow)));
        const double ramp = std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0);
        f = f * (1 - ramp) + f / p.factor * ramp;
      }
      result.push_back(f);
    }
    return result;
  }

  void rotate(Rows& x, uint32_t head_length, const model::Rope& rope) {
    const std::vector<double> f = frequencies(rope);
    const double magnitude = rope.params.scaling == numerics::RopeScaling::kYarn
                                 ? rope.params.attention_factor * (1 + 0.1 * std::log(rope.params.factor))
                                 : 1.0;
    const bool neox = rope.style == model::RopeStyle::kNeox;
    for (size_t t = 0; t < x.size(); ++t)
      for (size_t head = 0; head < x.width; head += head_length)
        for (size_t i = 0; i < f.size(); ++i) {
          double& a = x[t][head + (neox ? i : 2 * i)];
          double& b = x[t][head + (neox ? i + f.size() : 2 * i + 1)];
          const double c = std::cos(static_cast<double>(t) * f[i]) * magnitude,
                       s = std::sin(static_cast<double>(t) * f[i]) * magnitude;
          const double turned = a * c - b * s;
          b = a * s + b * c;
          a = turned;
        }
  }

  Rows attention(const model::Attention& a, const Rows& x) {
    Rows q = product(x, a.q, a.q_bias), k = product(x, a.k, a.k_bias);
    const Rows v = product(x, a.v, a.v_bias);
    if (a.qk_norm != model::QkNorm::kNone) {
      const bool per_head = a.qk_norm == model::QkNorm::kPerHead;
      norm_pieces(q, per_head ? a.key_length : q.width, a.q_norm);
      norm_pieces(k, per_head ? a.key_length : k.width, a.k_norm);
    }
    rotate(q, a.key_length, model_.ropes[a.rope]);
    rotate(k, a.key_length, model_.ropes[a.rope]);
    Rows out(x.size(), size_t{a.heads} * a.value_length);
    std::vector<double> p(x.size());
    for (size_t t = 0; t < x.size(); ++t)
      for (size_t h = 0; h < a.heads; ++h) {
        const size_t kv = h / (a.heads / a.kv_heads);
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (size_t j = 0; j <= t; ++j) {
          const double* query = q[t] + h * a.key_length;
          p[j] = std::inner_product(query, query + a.key_length, k[j] + kv * a.key_length, 0.0) * a.scale;
          largest = std::max(largest, p[j]);
        }
        for (size_t j = 0; j <= t; ++j) sum += p[j] = std::exp(p[j] - largest);
        for (size_t j = 0; j <= t; ++j)
          for (size_t d = 0; d < a.value_length; ++d)
            out[t][h * a.value_length + d] += p[j] / sum * v[j][kv * a.value_length + d];
      }
    return product(out, a.output, a.output_bias);
  }

  Rows feed_forward(const Rows& x, const Weight& gate, const Weight& up, const Weight& down) {
    Rows h = product(x, gate);
    const Rows u = product(x, up);
    for (size_t i = 0; i < h.values.size(); ++i) h.values[i] = silu(h.values[i]) * u.values[i];
    return product(h, down);
  }

  // Which experts a token uses, in falling order, with their weights.
  std::vector<std::pair<size_t, double>> choose(const double* logits, const model::MoeFfn& moe, double& gap) {
    const size_t n = moe.experts.size();
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
    if (moe.used < n) gap = std::min(gap, logits[order[moe.used - 1]] - logits[order[moe.used]]);
    double sum = 0, chosen_sum = 0;
    for (size_t e = 0; e < n; ++e) sum += std::exp(logits[e] - logits[order[0]]);
    std::vector<std::pair<size_t, double>> chosen;
    for (size_t rank = 0; rank < moe.used; ++rank) {
      chosen.emplace_back(order[rank], std::exp(logits[order[rank]] - logits[order[0]]) / sum);
      chosen_sum += chosen.back().second;
    }
    for (auto& [expert, weight] : chosen) weight *= moe.weights_scale / (moe.renormalize ? chosen_sum : 1.0);
    return chosen;
  }

  Rows mixture(const Rows& x, const model::MoeFfn& moe) {
    const Rows logits = product(x, moe.router);
    std::vector<std::vector<std::pair<size_t, double>>> users(moe.experts.size());  // (token, weight)
    for (size_t t = 0; t < x.size(); ++t)
      for (const auto& [expert, weight] : choose(logits[t], moe, (*gaps_)[t]))
        users[expert].emplace_back(t, weight);
    Rows out(x.size(), model_.hidden);
    for (size_t e = 0; e < users.size(); ++e) {
      if (users[e].empty()) continue;
      Rows in(users[e].size(), x.width);
      for (size_t i = 0; i < users[e].size(); ++i) std::copy_n(x[users[e][i].first], x.width, in[i]);
      const Rows y = feed_forward(in, moe.experts[e].gate, moe.experts[e].up, moe.experts[e].down);
      for (size_t i = 0; i < users[e].size(); ++i)
        for (size_t d = 0; d < out.width; ++d) out[users[e][i].first][d] += users[e][i].second * y[i][d];
    }
    if (moe.shared) {
      Rows y = feed_forward(x, moe.shared->gate, moe.shared->up, moe.shared->down);
      if (moe.shared_gate) {
        const Rows gate = product(x, moe.shared_gate);
        for (size_t t = 0; t < y.size(); ++t)
          for (size_t d = 0; d < y.width; ++d) y[t][d] /= 1 + std::exp(-gate[t][0]);
      }
      add(out, y);
    }
    return out;
  }

  const engine::ModelFiles& files_;
  const model::Description& model_;
  std::vector<double>* gaps_ = nullptr;
  std::optional<Error> error_;
};

template <class T>
void log_softmax(std::span<const T> logits, std::vector<double>& out) {
  out.assign(logits.begin(), logits.end());
  const double largest = *std::ranges::max_element(out);
  double sum = 0;
  for (const double value : out) sum += std::exp(value - largest);
  for (double& value : out) value -= largest + std::log(sum);
}

}  // namespace

Result<ExactLogits> exact_forward(const std::string& path, std::span<const int32_t> tokens) {
  SW_ASSIGN(const engine::ModelFiles files, engine::open_model_files(path));
  SW_ASSIGN(const model::Description model, model::describe(files.model.metadata(), files.model.tensors()));
  return Forward(files, model).run(tokens);
}

Distance distance(std::span<const double> exact, std::span<const float> got, size_t vocabulary) {
  Distance d;
  std::vector<double> a, b;
  double squares = 0;
  for (size_t i = 0; i < exact.size(); ++i) squares += (exact[i] - got[i]) * (exact[i] - got[i]);
  d.rms = std::sqrt(squares / static_cast<double>(exact.size()));
  for (size_t at = 0; at < exact.size(); at += vocabulary) {
    log_softmax(exact.subspan(at, vocabulary), a);
    log_softmax(got.subspan(at, vocabulary), b);
    double kl = 0;
    for (size_t i = 0; i < vocabulary; ++i) kl += std::exp(a[i]) * (a[i] - b[i]);
    d.kl.push_back(kl);
    d.same_top1 += std::ranges::max_element(a) - a.begin() == std::ranges::max_element(b) - b.begin();
  }
  d.same_top1 /= static_cast<double>(d.kl.size());
  return d;
}

double Distance::mean_kl() const {
  return std::accumulate(kl.begin(), kl.end(), 0.0) / static_cast<double>(kl.size());
}
double Distance::max_kl() const { return *std::ranges::max_element(kl); }
double Distance::median_kl() const {
  std::vector<double> sorted = kl;
  std::ranges::sort(sorted);
  return sorted[sorted.size() / 2];
}

}  // namespace spillway::test_support
