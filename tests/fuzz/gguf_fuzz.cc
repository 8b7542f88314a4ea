// Any bytes give a header or an error; a header's parts lie where they may be used without further checks; a
// prefix and the whole file agree; what was read can be written and read again.
//
// With SPILLWAY_FUZZ_CANARY the reader is told that the file is longer than it is, as if the check of a
// tensor's end had been forgotten: tests/fuzz/canary/gguf must then be caught.
#include <cstddef>
#include <cstdint>
#include <span>

#include "check.h"
#include "gguf/shards.h"
#include "gguf/writer.h"

namespace {

using namespace spillway;

// Asks every key in every way: none may crash.
void ask(const gguf::Metadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    check(!value.to_text().empty(), "text of a value");
    check(!value.type_name().empty(), "type of a value");
    (void)metadata.find_uint(key, UINT64_MAX);
    (void)metadata.find_float(key);
    (void)metadata.find_bool(key);
    (void)metadata.find_string(key);
    (void)metadata.find_float_array(key);
    (void)metadata.find_int_array(key);
    (void)metadata.find_bool_array(key);
    (void)metadata.find_uint_or_array(key, 2, UINT32_MAX);
    const auto strings = metadata.find_string_array(key);
    if (!strings || !*strings) continue;
    size_t bytes = 0;
    for (size_t i = 0; i < (*strings)->size(); ++i) bytes += (**strings)[i].size();
    check(bytes <= size_t{1} << 40, "strings of an array");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
#ifdef SPILLWAY_FUZZ_CANARY
  const uint64_t file_bytes = size + 64;
#else
  const uint64_t file_bytes = size;
#endif
  const auto header = gguf::parse_header(bytes, file_bytes);
  for (const size_t cut : {size / 2, size - size / 8}) {
    const auto prefix = gguf::parse_prefix(bytes.first(cut), file_bytes);
    if (header) check(prefix.has_value(), "a prefix of a good file is refused");
    if (prefix && !prefix->header)
      check(prefix->need_bytes > cut && prefix->need_bytes <= file_bytes, "bytes that a prefix needs");
    if (prefix && prefix->header) check(header.has_value(), "a prefix of a refused file is taken");
  }
  if (!header) {
    check(!header.error().message.empty(), "an error without a message");
    return 0;
  }
  for (const gguf::TensorInfo& tensor : header->tensors) {
    check(tensor.offset <= size && tensor.bytes <= size - tensor.offset, "a tensor outside of the file");
    check(tensor.values() > 0, "a tensor without values");
    check(!gguf::describe(tensor).empty(), "text of a tensor");
  }
  ask(header->metadata);

  const auto rewritten = gguf::write_file({.metadata = header->metadata, .tensors = {}});
  check(rewritten.has_value(), "what was read can't be written");
  const auto again = gguf::parse_header(*rewritten, rewritten->size());
  check(again && again->metadata == header->metadata, "what was written reads differently");

  (void)gguf::open_model("a-00001-of-00002.gguf",
                         [&](const std::string&) -> Result<gguf::Header> { return *header; });
  return 0;
}
