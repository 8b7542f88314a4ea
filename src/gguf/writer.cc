#include "gguf/writer.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/checked.h"
#include "base/limits.h"
#include "gguf/format.h"
#include "gguf/names.h"
#include "gguf/shards.h"

namespace spillway::gguf {
namespace {

using Bytes = std::vector<std::byte>;

void put(Bytes& out, std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

template <class T>
void put_number(Bytes& out, T value) {
  put(out, std::as_bytes(std::span(&value, 1)));
}

void put_text(Bytes& out, std::string_view text) {
  put_number(out, uint64_t{text.size()});
  put(out, std::as_bytes(std::span(text)));
}

Result<void> put_array(Bytes& out, const Array& array, uint32_t depth) {
  if (depth >= limits::kMaxArrayDepth)
    return invalid("arrays are nested deeper than {} levels", limits::kMaxArrayDepth);
  put_number(out, static_cast<uint32_t>(array.element));
  put_number(out, array.size());
  if (const auto* strings = std::get_if<StringArray>(&array.items)) {
    for (size_t i = 0; i < strings->size(); ++i) put_text(out, (*strings)[i]);
  } else if (const auto* arrays = std::get_if<std::vector<Array>>(&array.items)) {
    for (const Array& inner : *arrays) SW_TRY(put_array(out, inner, depth + 1));
  } else {
    put(out, std::get<Bytes>(array.items));
  }
  return {};
}

Result<void> put_value(Bytes& out, const Value& value) {
  put_number(out, static_cast<uint32_t>(value.type()));
  if (const Array* array = value.as_array()) return put_array(out, *array, 0);
  if (const std::string* text = value.as_string()) {
    put_text(out, *text);
  } else {
    const uint64_t bits = value.bits();
    put(out, std::as_bytes(std::span(&bits, 1)).first(value_type_bytes(value.type())));
  }
  return {};
}

// The tensor as the header describes it, without its offset.
Result<TensorInfo> describe_source(const TensorSource& source) {
  TensorInfo tensor;
  tensor.name = source.name;
  tensor.type_id = source.type_id;
  if (source.dims.size() > limits::kMaxDims)
    return invalid("it has {} dimensions; at most {} are allowed", source.dims.size(), limits::kMaxDims);
  tensor.n_dims = static_cast<uint32_t>(source.dims.size());
  std::ranges::copy(source.dims, tensor.dims.begin());
  SW_TRY(set_size(tensor));
  if (!tensor.size_known) return unsupported("its type {} is not known", tensor.type_id);
  if (source.bytes.size() != tensor.bytes)
    return invalid("{} bytes were given for it; its dimensions and type need {}", source.bytes.size(),
                   tensor.bytes);
  return tensor;
}

// The header of `file`, padded to the alignment, and each tensor's place in the data behind it.
Result<Bytes> make_header(const FileSource& file, uint64_t alignment) {
  Bytes out;
  put(out, std::as_bytes(std::span(kMagic)));
  put_number(out, file.version);
  put_number(out, uint64_t{file.tensors.size()});
  put_number(out, uint64_t{file.metadata.size()});
  for (const Metadata::Entry& entry : file.metadata.entries()) {
    SW_TRY(check_name(entry.key, "a metadata key"));
    put_text(out, entry.key);
    Result<void> value = put_value(out, entry.value);
    if (!value) return std::unexpected(value.error().in(fmt::format("key {}", quoted(entry.key))));
  }
  std::unordered_set<std::string_view> names;
  uint64_t offset = 0;
  for (const TensorSource& source : file.tensors) {
    SW_TRY(check_name(source.name, "a tensor name"));
    if (!names.insert(source.name).second) return invalid("tensor {} is there twice", quoted(source.name));
    Result<TensorInfo> tensor = describe_source(source);
    if (!tensor) return std::unexpected(tensor.error().in(fmt::format("tensor {}", quoted(source.name))));
    put_text(out, tensor->name);
    put_number(out, tensor->n_dims);
    for (uint32_t i = 0; i < tensor->n_dims; ++i) put_number(out, tensor->dims[i]);
    put_number(out, tensor->type_id);
    put_number(out, offset);
    // Can't wrap: the bytes are in memory.
    offset += *checked_round_up(tensor->bytes, alignment);
  }
  out.resize(*checked_round_up(out.size(), alignment));
  return out;
}

}  // namespace

Result<void> write_file(const FileSource& file, const Sink& sink) {
  if (file.version != 2 && file.version != 3)
    return unsupported("GGUF version {} can't be written; versions 2 and 3 can", file.version);
  SW_ASSIGN(const uint64_t alignment, alignment_of(file.metadata));
  SW_ASSIGN(const Bytes header, make_header(file, alignment));
  SW_TRY(sink(header));
  const Bytes padding(alignment);
  for (const TensorSource& tensor : file.tensors) {
    SW_TRY(sink(tensor.bytes));
    const uint64_t rest = tensor.bytes.size() % alignment;
    if (rest != 0) SW_TRY(sink(std::span(padding).first(alignment - rest)));
  }
  return {};
}

Result<Bytes> write_file(const FileSource& file) {
  Bytes out;
  SW_TRY(write_file(file, [&](std::span<const std::byte> bytes) -> Result<void> {
    put(out, bytes);
    return {};
  }));
  return out;
}

Result<std::vector<Bytes>> write_shards(const FileSource& file, std::span<const uint32_t> shard_of,
                                        uint32_t count) {
  if (count == 0 || count > limits::kMaxShards)
    return invalid("{} shards were asked for; it needs to be 1 to {}", count, limits::kMaxShards);
  if (shard_of.size() != file.tensors.size())
    return invalid("shards were given for {} tensors; there are {}", shard_of.size(), file.tensors.size());
  std::vector<Bytes> files;
  for (uint32_t shard = 0; shard < count; ++shard) {
    FileSource part{.metadata = {}, .tensors = {}, .version = file.version};
    if (shard == 0)
      part.metadata = file.metadata;
    else if (const Value* alignment = file.metadata.find(kAlignmentKey))
      part.metadata.set(kAlignmentKey, *alignment);
    part.metadata.set(kSplitNoKey, static_cast<uint16_t>(shard));
    part.metadata.set(kSplitCountKey, static_cast<uint16_t>(count));
    part.metadata.set(kSplitTensorsKey, static_cast<int32_t>(file.tensors.size()));
    for (size_t i = 0; i < shard_of.size(); ++i)
      if (shard_of[i] == shard) part.tensors.push_back(file.tensors[i]);
    SW_ASSIGN(Bytes bytes, write_file(part));
    files.push_back(std::move(bytes));
  }
  return files;
}

}  // namespace spillway::gguf
