// Loading a model's weights as `-lm none` does, beside the least that any loader must do: two threads that
// read the same bytes into fresh memory with pages of the same size. In turns, warm; the ratio of the medians
// says what rearranging costs. 80 % is the bar (sys/load.h says where the time goes).
//
//   load_bench MODEL [rounds] [threads]
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "engine/model_files.h"
#include "engine/program.h"
#include "engine/weights.h"
#include "model/describe.h"

namespace spillway {
namespace {

constexpr uint64_t kPieceBytes = 4 << 20;  // as load() takes them

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Bench {
  engine::ModelFiles files;
  engine::Program program;
  uint64_t bytes = 0;
  uint32_t threads = 2;

  Result<double> load() const {
    const std::vector<bool> all(program.weights.size(), true);
    const double began = seconds();
    SW_ASSIGN(const auto weights,
              engine::HostWeights::load(files, program.weights, all, engine::LoadMode::kRead,
                                        cpu::kernels(cpu::best_instruction_set()), threads, {}));
    return seconds() - began;
  }

  Result<double> read() const {
    struct Piece {
      const model::Weight* weight;
      uint64_t at, bytes, to;
    };
    std::vector<Piece> pieces;
    uint64_t to = 0;
    for (const model::Weight& weight : program.weights)
      for (uint64_t at = 0; at < weight.bytes(); at += kPieceBytes) {
        pieces.push_back({&weight, at, std::min(kPieceBytes, weight.bytes() - at), to});
        to += pieces.back().bytes;
      }
    std::atomic<size_t> next = 0;
    std::atomic<bool> failed = false;
    const double began = seconds();
    SW_ASSIGN(const auto memory, sys::Allocation::create(bytes, sys::Pages::kPreferHuge));
    const auto work = [&] {
      for (size_t i; (i = next.fetch_add(1)) < pieces.size();) {
        const Piece& piece = pieces[i];
        if (!files.files[piece.weight->shard]->read_at(piece.weight->offset + piece.at,
                                                       memory.bytes().subspan(piece.to, piece.bytes)))
          failed = true;
      }
    };
    std::vector<std::jthread> others(threads - 1);
    for (std::jthread& other : others) other = std::jthread(work);
    work();
    others.clear();
    const double taken = seconds() - began;
    if (failed) return invalid("the file could not be read");
    return taken;
  }
};

Result<Bench> open(const std::string& path, uint32_t threads) {
  SW_ASSIGN(auto files, engine::open_model_files(path));
  SW_ASSIGN(const auto description, model::describe(files.model.metadata(), files.model.tensors()));
  Bench bench{std::move(files), engine::Program(description), 0, threads};
  for (const model::Weight& weight : bench.program.weights) bench.bytes += weight.bytes();
  return bench;
}

Result<void> run(const std::string& path, uint32_t rounds, uint32_t threads) {
  SW_ASSIGN(const Bench bench, open(path, threads));
  const double gb = static_cast<double>(bench.bytes) * 1e-9;
  SW_TRY(bench.read());  // the page cache holds it now
  fmt::print("{}: {:.3f} GB of weights, {} threads, {} rounds; measured\n", path, gb, threads, rounds);
  fmt::print("round   plain read    -lm none\n");
  std::vector<double> reads, loads;
  for (uint32_t round = 0; round < rounds; ++round) {
    for (const bool is_load : {round % 2 != 0, round % 2 == 0}) {
      SW_ASSIGN(const double taken, is_load ? bench.load() : bench.read());
      (is_load ? loads : reads).push_back(taken);
    }
    fmt::print("{:<5} {:7.2f} GB/s {:6.2f} GB/s\n", round + 1, gb / reads.back(), gb / loads.back());
  }
  fmt::print(
      "medians: {:.4f} s of a plain read, {:.4f} s of loading: {:.1f} % of its speed (the bar: 80 %)\n",
      median(reads), median(loads), 100 * median(reads) / median(loads));
  return {};
}

}  // namespace
}  // namespace spillway

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5, threads = argc > 3 ? std::atoi(argv[3]) : 2;
  if (argc < 2 || argc > 4 || rounds < 1 || threads < 1 || threads > 256) {
    fmt::print(stderr, "load_bench MODEL [rounds, default 5] [threads, default 2]\n");
    return 2;
  }
  const auto done = spillway::run(argv[1], static_cast<uint32_t>(rounds), static_cast<uint32_t>(threads));
  if (!done) fmt::print(stderr, "load_bench: {}\n", done.error().message);
  return done ? 0 : 1;
}
