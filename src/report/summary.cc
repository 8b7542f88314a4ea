#include "report/summary.h"

namespace spillway::report {
namespace {

void add(Amount& sum, const Amount& more) {
  sum.amount += more.amount;
  sum.seconds += more.seconds;
}

}  // namespace

Amount decode_amount(const Run& run) {
  Amount sum;
  for (const Request& request : run.requests)
    add(sum, {static_cast<double>(request.itl_ms.size()), request.decode_s});
  return sum;
}

Amount prefill_amount(const Run& run) {
  Amount sum;
  for (const Request& request : run.requests)
    add(sum, {static_cast<double>(request.prompt_tokens) - request.cached_tokens, request.prefill_s});
  return sum;
}

std::vector<Amount> amounts_of(std::span<const Run* const> runs, Amount (*amount)(const Run&)) {
  std::vector<Amount> amounts;
  for (const Run* run : runs)
    if (const Amount one = amount(*run); one.amount > 0 && one.seconds > 0) amounts.push_back(one);
  return amounts;
}

double decode_tok_s(const Run& run) {
  const Amount one = decode_amount(run);
  return total_rate(std::span(&one, 1));
}

double prefill_tok_s(const Run& run) {
  const Amount one = prefill_amount(run);
  return total_rate(std::span(&one, 1));
}

double ttft_s(const Run& run) {
  std::vector<double> all;
  for (const Request& request : run.requests)
    if (request.ttft_s > 0) all.push_back(request.ttft_s);
  return median(all);
}

Summary summarize(std::span<const Run* const> runs) {
  Summary summary;
  Amount decode, prefill;
  std::vector<double> itl_ms, ttft_s;
  uint64_t hits = 0, misses = 0;
  for (const Run* run : runs) {
    ++summary.runs;
    add(decode, decode_amount(*run));
    add(prefill, prefill_amount(*run));
    summary.seconds += run->seconds;
    summary.cpu_s += run->cpu_s;
    summary.host_peak_bytes = std::max(summary.host_peak_bytes, run->host_peak_bytes);
    summary.device_peak_bytes = std::max(summary.device_peak_bytes, run->device_peak_bytes);
    for (const Request& request : run->requests) {
      ++summary.requests;
      ++summary.finishes[request.finish];
      summary.generated_tokens += request.generated_tokens;
      itl_ms.insert(itl_ms.end(), request.itl_ms.begin(), request.itl_ms.end());
      if (request.ttft_s > 0) ttft_s.push_back(request.ttft_s);
    }
    if (run->experts) {
      hits += run->experts->hits;
      misses += run->experts->misses;
      summary.bytes_up += run->experts->bytes_up;
    }
  }
  summary.decode_tok_s = total_rate(std::span(&decode, 1));
  summary.prefill_tok_s = total_rate(std::span(&prefill, 1));
  summary.ttft_s = median(ttft_s);
  summary.p50_itl_ms = quantile(itl_ms, 0.5);
  summary.p95_itl_ms = quantile(itl_ms, 0.95);
  summary.p99_itl_ms = quantile(itl_ms, 0.99);
  summary.itl_count = itl_ms.size();
  for (const double ms : itl_ms) summary.stalls += ms > kStallMultiple * summary.p50_itl_ms ? 1 : 0;
  if (hits + misses > 0) summary.hit_rate = static_cast<double>(hits) / static_cast<double>(hits + misses);
  return summary;
}

std::vector<const Run*> runs_of(const ResultFile& result, uint32_t setting, bool warm) {
  std::vector<const Run*> runs;
  for (const Run& run : result.runs)
    if (run.setting == setting && run.warm == warm && !run.requests.empty()) runs.push_back(&run);
  return runs;
}

std::vector<double> rates_of(std::span<const Run* const> runs, double (*rate)(const Run&)) {
  std::vector<double> rates;
  for (const Run* run : runs)
    if (const double value = rate(*run); value > 0) rates.push_back(value);
  return rates;
}

}  // namespace spillway::report
