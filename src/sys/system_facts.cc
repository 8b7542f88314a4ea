#include "sys/system_facts.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/utsname.h>

#include <cstring>
#include <optional>
#include <span>

#include "sys/file.h"
#include "sys/text.h"

namespace spillway::sys {
namespace {

// The value behind the first "name<separator>value".
std::optional<std::string> value_of(std::string_view text, std::string_view name, char separator) {
  for (const std::string_view line : split(text, '\n')) {
    const size_t at = line.find(separator);
    if (at != line.npos && trim(line.substr(0, at)) == name) return std::string(trim(line.substr(at + 1)));
  }
  return std::nullopt;
}

// The build id among the notes of one segment; empty where it isn't there.
std::string id_in_notes(std::span<const std::byte> notes) {
  const auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes.data(), sizeof(head));
    notes = notes.subspan(sizeof(head));
    const size_t name = padded(head.n_namesz), content = padded(head.n_descsz);
    if (name + content > notes.size()) break;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(notes.data(), "GNU", 4) == 0) {
      std::string id;
      for (const std::byte byte : notes.subspan(name, head.n_descsz))
        id += fmt::format("{:02x}", static_cast<unsigned>(byte));
      return id;
    }
    notes = notes.subspan(name + content);
  }
  return "";
}

// dl_iterate_phdr gives the program itself first; its answer ends the walk.
int take_program(dl_phdr_info* info, size_t, void* to) {
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* begin = reinterpret_cast<const std::byte*>(info->dlpi_addr + segment.p_vaddr);
    if (const std::string id = id_in_notes({begin, segment.p_memsz}); !id.empty()) {
      *static_cast<std::string*>(to) = id;
      break;
    }
  }
  return 1;
}

}  // namespace

std::string cpu_name(const std::string& root) {
  const auto text = read_text(root + "/proc/cpuinfo");
  if (!text) return "";
  if (const auto name = value_of(*text, "model name", ':')) return *name;
  const auto implementer = value_of(*text, "CPU implementer", ':'), part = value_of(*text, "CPU part", ':');
  return implementer && part ? fmt::format("implementer {} part {}", *implementer, *part) : "";
}

std::string system_name(const std::string& root) {
  std::string name;
  if (const auto text = read_text(root + "/etc/os-release"))
    name = value_of(*text, "PRETTY_NAME", '=').value_or("");
  std::erase(name, '"');
  utsname kernel{};
  if (uname(&kernel) == 0)
    name += fmt::format("{}{} {}", name.empty() ? "" : ", ", kernel.sysname, kernel.release);
  return name;
}

std::string build_id() {
  std::string id;
  dl_iterate_phdr(take_program, &id);
  return id;
}

}  // namespace spillway::sys
