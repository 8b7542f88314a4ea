#include "gguf/reader.h"

#include <algorithm>
#include <unordered_set>

#include "base/checked.h"
#include "base/limits.h"
#include "base/tensor_type.h"
#include "gguf/cursor.h"
#include "gguf/format.h"
#include "gguf/names.h"

namespace spillway::gguf {
namespace {

// Files that people hand over by mistake, by how they begin.
struct Lookalike {
  std::string_view begin;
  std::string_view what;
};
constexpr Lookalike kLookalikes[] = {
    {"version https://git-lfs", "a Git LFS pointer, not the model itself; fetch it with 'git lfs pull'"},
    {"<!DOCTYPE", "an HTML page, not a model; the download went wrong"},
    {"<html", "an HTML page, not a model; the download went wrong"},
    {"PK\x03\x04", "a ZIP archive (a PyTorch checkpoint?), not a GGUF file; convert it to GGUF"},
    {"tjgg", "a GGJT file, a predecessor of GGUF; convert the model to GGUF anew"},
    {"fmgg", "a GGMF file, a predecessor of GGUF; convert the model to GGUF anew"},
    {"lmgg", "a GGML file, a predecessor of GGUF; convert the model to GGUF anew"},
    {"FUGG", "big-endian; only little-endian GGUF files are supported: use a little-endian copy"},
};

// Reads magic and version; the version is 2 or 3 afterwards.
Result<uint32_t> read_start(Cursor& cursor, std::span<const std::byte> prefix, uint64_t file_bytes) {
  if (file_bytes == 0) return invalid("the file is empty; it needs to be a GGUF file");
  const std::string_view begin(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  for (const Lookalike& entry : kLookalikes)
    if (begin.starts_with(entry.begin)) return unsupported("the file is {}", entry.what);
  SW_ASSIGN(const auto magic, cursor.take(kMagic.size(), "the magic (GGUF)"));
  const std::string_view found(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (found != kMagic)
    return invalid("the file begins with {}; a GGUF file begins with 'GGUF'", quoted(found));

  SW_ASSIGN(const uint32_t version, cursor.number<uint32_t>("the version"));
  // A small number with its bytes swapped has a low half of zero.
  if (version != 0 && (version & 0xffff) == 0)
    return unsupported(
        "the file is big-endian (its version reads as {:#010x}); only little-endian GGUF files are "
        "supported: use a little-endian copy",
        version);
  if (version == 1)
    return unsupported(
        "the file is GGUF version 1, which was in use for a few weeks of 2023; versions 2 and 3 are "
        "supported: convert the model anew");
  if (version == 0 || version > 3)
    return unsupported("the file is GGUF version {}; versions 2 and 3 are supported", version);
  return version;
}

Result<uint64_t> read_count(Cursor& cursor, std::string_view what, uint64_t least_bytes, uint64_t limit) {
  SW_ASSIGN(const uint64_t count, cursor.number<uint64_t>(what));
  if (count > cursor.left_in_file() / least_bytes)
    return invalid("{} is {}, which can't fit the {} bytes that are left in the file; it is damaged", what,
                   count, cursor.left_in_file());
  if (count > limit) return unsupported("{} is {}; at most {} are supported", what, count, limit);
  return count;
}

Result<void> read_metadata(Cursor& cursor, uint64_t count, Metadata& metadata) {
  for (uint64_t i = 0; i < count; ++i) {
    SW_ASSIGN(const std::string_view key, cursor.text("a metadata key"));
    SW_TRY(check_name(key, fmt::format("metadata key {}", i)));
    if (metadata.contains(key)) return invalid("key {} is there twice; the file is damaged", quoted(key));
    Result<Value> value = read_value(cursor);
    if (!value) return std::unexpected(value.error().in(fmt::format("key {}", quoted(key))));
    metadata.set(key, *std::move(value));
  }
  return {};
}

// One tensor's entry; its offset still counts from the start of the data.
Result<void> read_tensor_fields(Cursor& cursor, TensorInfo& tensor) {
  SW_ASSIGN(tensor.n_dims, cursor.number<uint32_t>("the number of dimensions"));
  if (tensor.n_dims > limits::kMaxDims)
    return invalid("it has {} dimensions; at most {} are allowed", tensor.n_dims, limits::kMaxDims);
  for (uint32_t i = 0; i < tensor.n_dims; ++i) {
    SW_ASSIGN(tensor.dims[i], cursor.number<uint64_t>("a dimension"));
  }
  SW_ASSIGN(tensor.type_id, cursor.number<uint32_t>("a tensor type"));
  SW_ASSIGN(tensor.offset, cursor.number<uint64_t>("a tensor offset"));
  return set_size(tensor);
}

Result<std::vector<TensorInfo>> read_tensors(Cursor& cursor, uint64_t count) {
  constexpr uint64_t kLeastBytes = 8 + 4 + 4 + 8;
  std::vector<TensorInfo> tensors;
  tensors.reserve(std::min(count, cursor.left_in_prefix() / kLeastBytes));
  for (uint64_t i = 0; i < count; ++i) {
    TensorInfo tensor;
    SW_ASSIGN(const std::string_view name, cursor.text("a tensor name"));
    SW_TRY(check_name(name, fmt::format("the name of tensor {}", i)));
    tensor.name = name;
    Result<void> fields = read_tensor_fields(cursor, tensor);
    if (!fields) return std::unexpected(fields.error().in(fmt::format("tensor {}", quoted(name))));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Turns offsets into positions in the file and checks that each tensor lies within it.
Result<void> place_tensors(std::vector<TensorInfo>& tensors, uint64_t data_offset, uint64_t alignment,
                           uint64_t file_bytes) {
  for (TensorInfo& tensor : tensors) {
    if (tensor.offset % alignment != 0)
      return invalid("tensor {}: its offset {} is no multiple of the alignment {}", quoted(tensor.name),
                     tensor.offset, alignment);
    const auto begin = checked_add(data_offset, tensor.offset);
    const auto end = begin ? checked_add(*begin, tensor.bytes) : std::nullopt;
    if (!end || *end > file_bytes)
      return invalid(
          "tensor {}: its {} bytes at offset {} of the data end past the end of the file ({} bytes, data "
          "begins at {}); the file is damaged or was not copied in full",
          quoted(tensor.name), tensor.bytes, tensor.offset, file_bytes, data_offset);
    tensor.offset = *begin;
  }
  return {};
}

Result<void> check_unique(const std::vector<TensorInfo>& tensors) {
  std::unordered_set<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors)
    if (!names.insert(tensor.name).second)
      return invalid("tensor {} is there twice; the file is damaged", quoted(tensor.name));
  return {};
}

Result<void> check_overlap(const std::vector<TensorInfo>& tensors) {
  std::vector<const TensorInfo*> order;
  order.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors)
    if (tensor.bytes > 0) order.push_back(&tensor);
  std::ranges::sort(order, {}, &TensorInfo::offset);
  for (size_t i = 1; i < order.size(); ++i) {
    const uint64_t end = order[i - 1]->offset + order[i - 1]->bytes;
    if (end > order[i]->offset)
      return invalid("tensors {} and {} overlap: the first ends at byte {}, the second begins at byte {}",
                     quoted(order[i - 1]->name), quoted(order[i]->name), end, order[i]->offset);
  }
  return {};
}

Result<Header> parse(Cursor& cursor, std::span<const std::byte> prefix, uint64_t file_bytes) {
  Header header;
  SW_ASSIGN(header.version, read_start(cursor, prefix, file_bytes));
  SW_ASSIGN(const uint64_t n_tensors,
            read_count(cursor, "the number of tensors", 8 + 4 + 4 + 8, limits::kMaxTensors));
  SW_ASSIGN(const uint64_t n_keys,
            read_count(cursor, "the number of metadata keys", 8 + 4 + 1, limits::kMaxMetadataKeys));
  SW_TRY(read_metadata(cursor, n_keys, header.metadata));
  SW_ASSIGN(header.alignment, alignment_of(header.metadata));
  SW_ASSIGN(header.tensors, read_tensors(cursor, n_tensors));
  const auto data_offset = checked_round_up(cursor.position(), header.alignment);
  if (!data_offset) return invalid("the header ends at byte {}, too far to be aligned", cursor.position());
  header.data_offset = *data_offset;
  SW_TRY(place_tensors(header.tensors, header.data_offset, header.alignment, file_bytes));
  SW_TRY(check_unique(header.tensors));
  SW_TRY(check_overlap(header.tensors));
  return header;
}

}  // namespace

Result<PrefixResult> parse_prefix(std::span<const std::byte> prefix, uint64_t file_bytes) {
  prefix = prefix.first(std::min<uint64_t>(prefix.size(), file_bytes));
  Cursor cursor(prefix, file_bytes);
  Result<Header> header = parse(cursor, prefix, file_bytes);
  if (header) return PrefixResult{*std::move(header), 0};
  if (cursor.need_bytes() > 0) return PrefixResult{std::nullopt, cursor.need_bytes()};
  return std::unexpected(std::move(header).error());
}

Result<Header> parse_header(std::span<const std::byte> prefix, uint64_t file_bytes) {
  SW_ASSIGN(PrefixResult result, parse_prefix(prefix, file_bytes));
  if (!result.header)
    return invalid("the header goes on past the first {} bytes; at least {} are needed", prefix.size(),
                   result.need_bytes);
  return *std::move(result.header);
}

Result<Header> read_header(uint64_t file_bytes, const ReadAt& read_at) {
  // Most headers are a few MiB, vocabulary included. Growing by four keeps the bytes parsed below 4/3 of the
  // last try.
  uint64_t want = std::min<uint64_t>(file_bytes, uint64_t{4} << 20);
  std::vector<std::byte> prefix;
  while (true) {
    const size_t had = prefix.size();
    prefix.resize(want);
    SW_TRY(read_at(had, std::span(prefix).subspan(had)));
    SW_ASSIGN(PrefixResult result, parse_prefix(prefix, file_bytes));
    if (result.header) return *std::move(result.header);
    want = std::min(file_bytes, std::max<uint64_t>(result.need_bytes, uint64_t{want} * 4));
  }
}

}  // namespace spillway::gguf
