// Quantizes a model of F32 tensors, as the demo model's training script exports it:
//   quantize_model IN.gguf OUT.gguf --dense Q8_0 --experts Q4_K --narrow Q5_0
// Norms, biases and routers stay F32. --narrow is for rows that do not divide into the blocks of the type
// asked for.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "gguf/reader.h"
#include "gguf/writer.h"
#include "numerics/quantize.h"

namespace spillway {
namespace {

struct Types {
  TensorType dense, experts, narrow;
};

Result<TensorType> choose_type(const gguf::TensorInfo& tensor, const Types& types) {
  const bool is_expert = tensor.name.find("_exps.") != std::string::npos;
  const bool keep = tensor.n_dims < 2 || tensor.name.find("ffn_gate_inp") != std::string::npos;
  if (keep) return TensorType::kF32;
  const TensorType wanted = is_expert ? types.experts : types.dense;
  if (tensor.dims[0] % info(wanted).block_length == 0) return wanted;
  if (tensor.dims[0] % info(types.narrow).block_length == 0) return types.narrow;
  return invalid("tensor '{}': rows of {} divide into blocks of neither {} nor {}", tensor.name,
                 tensor.dims[0], info(wanted).name, info(types.narrow).name);
}

Result<void> quantize(const std::string& in, const std::string& out, const Types& types) {
  std::ifstream file(in, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.empty()) return invalid("'{}' cannot be read", in);
  SW_ASSIGN(const gguf::Header header, gguf::parse_header(std::as_bytes(std::span(bytes)), bytes.size()));
  gguf::FileSource source{.metadata = header.metadata};
  std::vector<std::vector<std::byte>> storage;
  storage.reserve(header.tensors.size());
  for (const gguf::TensorInfo& tensor : header.tensors) {
    if (tensor.type_id != static_cast<uint32_t>(TensorType::kF32))
      return invalid("tensor '{}' is not F32", tensor.name);
    SW_ASSIGN(const TensorType type, choose_type(tensor, types));
    const float* values = reinterpret_cast<const float*>(bytes.data() + tensor.offset);
    std::vector<std::byte>& to = storage.emplace_back(tensor.rows() * row_bytes(type, tensor.dims[0]));
    for (uint64_t row = 0; row < tensor.rows(); ++row)
      numerics::quantize_weights(type, values + row * tensor.dims[0], tensor.dims[0],
                                 to.data() + row * row_bytes(type, tensor.dims[0]));
    source.tensors.push_back({tensor.name, static_cast<uint32_t>(type),
                              std::vector<uint64_t>(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims),
                              to});
  }
  std::ofstream to(out, std::ios::binary);
  SW_TRY(gguf::write_file(source, [&](std::span<const std::byte> piece) -> Result<void> {
    if (to.write(reinterpret_cast<const char*>(piece.data()), static_cast<std::streamsize>(piece.size())))
      return {};
    return fail(Error::Kind::kIo, "'{}' cannot be written", out);
  }));
  return {};
}

}  // namespace
}  // namespace spillway

int main(int argc, char** argv) {
  using namespace spillway;
  std::string in, out, dense = "Q8_0", experts = "Q4_K", narrow = "Q5_0";
  CLI::App app("Quantizes a model of F32 tensors", "quantize_model");
  app.add_option("in", in)->required();
  app.add_option("out", out)->required();
  app.add_option("--dense", dense, "embeddings and attention")->capture_default_str();
  app.add_option("--experts", experts)->capture_default_str();
  app.add_option("--narrow", narrow, "where rows do not divide into blocks")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const TensorTypeInfo *d = find_tensor_type(dense), *e = find_tensor_type(experts),
                       *n = find_tensor_type(narrow);
  if (!d || !e || !n) {
    std::fprintf(stderr, "quantize_model: unknown type\n");
    return 2;
  }
  if (auto done = quantize(in, out, {d->type, e->type, n->type}); !done) {
    std::fprintf(stderr, "quantize_model: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}
