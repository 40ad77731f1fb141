#include "tests/mock_hip/code_object.h"

#include <elf.h>

#include <cstring>
#include <map>

namespace mock_hip {

// A MessagePack value, of the kinds that the metadata uses.
struct Value {
  uint64_t number = 0;
  std::string text;
  std::vector<Value> items;
  std::map<std::string, Value> fields;

  const Value& operator[](const char* name) const {
    static const Value none;
    const auto found = fields.find(name);
    return found == fields.end() ? none : found->second;
  }
};

class Reader {
 public:
  Reader(const uint8_t* from, const uint8_t* end) : at_(from), end_(end) {}
  bool failed() const { return failed_; }

  Value value() {
    const uint8_t type = uint8_t(big_endian(1));
    if (type < 0x80) return number(type);
    if (type < 0x90) return map(type & 15);
    if (type < 0xa0) return array(type & 15);
    if (type < 0xc0) return text(type & 31);
    switch (type) {
      case 0xc2:
        return number(0);
      case 0xc3:
        return number(1);
      case 0xcc:
        return number(big_endian(1));
      case 0xcd:
        return number(big_endian(2));
      case 0xce:
        return number(big_endian(4));
      case 0xcf:
        return number(big_endian(8));
      case 0xd9:
        return text(big_endian(1));
      case 0xda:
        return text(big_endian(2));
      case 0xdc:
        return array(big_endian(2));
      case 0xde:
        return map(big_endian(2));
    }
    failed_ = true;
    return {};
  }

 private:
  uint64_t big_endian(unsigned bytes) {
    uint64_t result = 0;
    for (; bytes; --bytes) {
      if (at_ == end_) failed_ = true;
      if (failed_) return 0;
      result = result << 8 | *at_++;
    }
    return result;
  }
  static Value number(uint64_t from) {
    Value result;
    result.number = from;
    return result;
  }
  Value text(uint64_t bytes) {
    Value result;
    if (bytes > uint64_t(end_ - at_)) failed_ = true;
    if (failed_) return result;
    result.text.assign(reinterpret_cast<const char*>(at_), bytes);
    at_ += bytes;
    return result;
  }
  Value array(uint64_t count) {
    Value result;
    for (; count && !failed_; --count) result.items.push_back(value());
    return result;
  }
  Value map(uint64_t count) {
    Value result;
    for (; count && !failed_; --count) {
      const std::string name = value().text;
      result.fields[name] = value();
    }
    return result;
  }

  const uint8_t* at_;
  const uint8_t* end_;
  bool failed_ = false;
};

static KernelMetadata read_kernel(const Value& from) {
  KernelMetadata kernel;
  kernel.name = from[".name"].text;
  kernel.symbol = from[".symbol"].text;
  kernel.kernarg_bytes = from[".kernarg_segment_size"].number;
  kernel.shared_bytes = from[".group_segment_fixed_size"].number;
  kernel.max_threads = from[".max_flat_workgroup_size"].number;
  kernel.wave = from[".wavefront_size"].number;
  kernel.vgprs = from[".vgpr_count"].number;
  kernel.vgpr_spills = from[".vgpr_spill_count"].number;
  kernel.sgpr_spills = from[".sgpr_spill_count"].number;
  kernel.private_bytes = from[".private_segment_fixed_size"].number;
  for (const Value& argument : from[".args"].items)
    kernel.arguments.push_back(
        {argument[".offset"].number, argument[".size"].number, argument[".value_kind"].text});
  return kernel;
}

static std::string read_metadata(const uint8_t* from, const uint8_t* end, CodeObject* out) {
  Reader reader(from, end);
  const Value root = reader.value();
  if (reader.failed()) return "the metadata is not MessagePack as code objects have it";
  const std::string target = root["amdhsa.target"].text;  // "amdgcn-amd-amdhsa--gfx9-4-generic"
  const size_t at = target.find("--");
  if (at == target.npos) return "the metadata has no target";
  out->target = target.substr(at + 2);
  for (const Value& kernel : root["amdhsa.kernels"].items) out->kernels.push_back(read_kernel(kernel));
  return "";
}

static std::string read_notes(const uint8_t* at, const uint8_t* end, CodeObject* out) {
  const auto padded = [](uint64_t bytes) { return (bytes + 3) & ~uint64_t(3); };
  while (uint64_t(end - at) >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, at, sizeof note);
    at += sizeof note;
    if (padded(note.n_namesz) + padded(note.n_descsz) > uint64_t(end - at))
      return "a note passes its segment";
    at += padded(note.n_namesz);
    constexpr uint32_t kMetadataNote = 32;  // NT_AMDGPU_METADATA
    if (note.n_type == kMetadataNote) return read_metadata(at, at + note.n_descsz, out);
    at += padded(note.n_descsz);
  }
  return "";
}

std::string CodeObject::parse(const uint8_t* bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG))
    return "not an ELF file: code objects are given raw, without a bundle";
  constexpr uint16_t kMachineAmdgpu = 224;
  constexpr uint8_t kAbiHsa = 64;
  if (header.e_machine != kMachineAmdgpu || header.e_ident[EI_OSABI] != kAbiHsa)
    return "an ELF file, but not for an AMD GPU";
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes + header.e_phoff + uint64_t(i) * header.e_phentsize, sizeof segment);
    if (segment.p_type != PT_NOTE || !kernels.empty()) continue;
    const uint8_t* notes = bytes + segment.p_offset;
    const std::string wrong = read_notes(notes, notes + segment.p_filesz, this);
    if (!wrong.empty()) return wrong;
  }
  return kernels.empty() ? "a code object without kernel metadata" : "";
}

const KernelMetadata* CodeObject::find(const std::string& name) const {
  for (const KernelMetadata& kernel : kernels)
    if (kernel.name == name && kernel.symbol == name + ".kd") return &kernel;
  return nullptr;
}

}  // namespace mock_hip
