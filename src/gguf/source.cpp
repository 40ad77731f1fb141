// Reads from what the source was opened with, and finds the parts of a split model by their names.
#include "gguf/source.h"

#include <cstring>
#include <string_view>

namespace greta {
namespace {

// File names of a split model end like "-00002-of-00005.gguf".
constexpr size_t kSuffixBytes = 20;

bool five_digits(std::string_view text, uint32_t* out) {
  *out = 0;
  for (const char c : text.substr(0, 5)) {
    if (c < '0' || c > '9') return false;
    *out = *out * 10 + uint32_t(c - '0');
  }
  return true;
}

bool split_name(std::string_view path, uint32_t* out_part, uint32_t* out_count) {
  if (path.size() < kSuffixBytes) return false;
  const std::string_view end = path.substr(path.size() - kSuffixBytes);
  return end[0] == '-' && five_digits(end.substr(1), out_part) && end.substr(6, 4) == "-of-" &&
         five_digits(end.substr(10), out_count) && end.substr(15) == ".gguf";
}

}  // namespace

Status Source::add_file(const std::string& path) {
  Part part;
  part.name = path;
  GRETA_TRY(part.file.open(path.c_str()));
  part.size = part.file.size();
  parts_.push_back(std::move(part));
  return {};
}

Status Source::open_file(const char* path, bool map) {
  if (!path || !*path) return fail(Code::Argument, "the path is empty");
  map_ = map;
  uint32_t number, count;
  if (!split_name(path, &number, &count)) return add_file(path);
  if (number < 1 || number > count || count > kMaxParts)
    return fail(Code::File, "'%s': part %u of %u, expected a part from 1 to the count, and at most %u parts",
                path, number, count, kMaxParts);
  const std::string stem(path, strlen(path) - kSuffixBytes);
  for (uint32_t i = 1; i <= count; ++i) {
    char suffix[32];
    format_text(suffix, sizeof suffix, "-%05u-of-%05u.gguf", i, count);
    const Status status = add_file(stem + suffix);
    if (!status.ok()) {
      parts_.clear();
      return within(status, "part %u of %u of a split model", i, count);
    }
  }
  return {};
}

Status Source::open_memory(const void* bytes, uint64_t size) {
  if (!bytes) return fail(Code::Argument, "the memory is a null pointer");
  Part part;
  part.name = "memory";
  part.size = size;
  part.memory = static_cast<const uint8_t*>(bytes);
  parts_.push_back(std::move(part));
  return {};
}

Status Source::open_callback(ReadAt read_at, void* user, uint64_t size) {
  if (!read_at) return fail(Code::Argument, "the read callback is a null pointer");
  Part part;
  part.name = "callback";
  part.size = size;
  parts_.push_back(std::move(part));
  callback_ = read_at;
  user_ = user;
  return {};
}

Status Source::read_at(uint32_t part_index, uint64_t offset, void* to, uint64_t bytes) const {
  const Part& part = parts_[part_index];
  uint64_t end;
  if (!checked_add(offset, bytes, &end) || end > part.size)
    return fail(Code::File, "%s: cannot read %llu bytes at offset %llu: it has %llu bytes", part.name.c_str(),
                (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)part.size);
  if (bytes == 0) return {};
  if (part.memory) return memcpy(to, part.memory + offset, bytes), Status{};
  if (!callback_) return within(part.file.read_at(offset, to, bytes), "%s", part.name.c_str());
  const int result = callback_(user_, offset, to, bytes);
  if (result != 0)
    return fail(Code::File, "%s: it returned %d when asked for %llu bytes at offset %llu", part.name.c_str(),
                result, (unsigned long long)bytes, (unsigned long long)offset);
  return {};
}

Status Source::map(uint32_t part_index, const uint8_t** out_bytes) {
  Part& part = parts_[part_index];
  if (part.memory) return *out_bytes = part.memory, Status{};
  if (!map_) return fail(Code::Unsupported, "%s: it cannot be mapped", part.name.c_str());
  return within(part.file.map(out_bytes), "%s", part.name.c_str());
}

Status Source::check_mapped() const {
  for (const Part& part : parts_) GRETA_TRY(within(part.file.check_mapped(), "%s", part.name.c_str()));
  return {};
}

}  // namespace greta
