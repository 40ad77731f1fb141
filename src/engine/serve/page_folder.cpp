#include "engine/serve/page_folder.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/session/state.h"

namespace greta {

namespace {

constexpr const char* kPages = "/greta-????????????????.kvpage";  // as list_files() takes it

// The text follows, then keys, values and the token log as Executor::save_page() has them.
struct PageHeader {
  char magic[8] = {'G', 'R', 'E', 'T', 'A', 'P', 'G', '\n'};
  StateHeader cache;  // of the text's tokens
  uint64_t origin, salt;
  uint64_t checksum = 0;  // of the text and the page
};
static_assert(sizeof(PageHeader) == 112);

// Pages of another device, driver or library are equal up to rounding, and those of an exact runtime are not
// those of another one.
uint64_t origin_of(const Executor& executor, uint32_t version) {
  const Model& model = executor.model();
  const uint32_t numbers[] = {version, model.exact};
  Checksum sum;
  for (const ModelDevice& each : model.devices) {
    const DeviceInfo& device = each.device->info();
    sum.add(device.backend, sizeof device.backend);
    sum.add(device.name, sizeof device.name);
    sum.add(device.driver, sizeof device.driver);
  }
  sum.add(numbers, sizeof numbers);
  if (model.devices.size() > 1) {
    sum.add(model.placement.device.data(), model.placement.device.size());
    sum.add(model.placement.experts.data(), model.placement.experts.size());
  }
  return sum.value();
}

// Of a cache without windows of their own all pages are whole.
StateHeader cache_header(const Executor& executor, size_t tokens, PageFolder::Part part) {
  return state_header(executor, uint32_t(tokens),
                      part == PageFolder::Part::Page ? Executor::CacheForm::Whole : executor.cache_form());
}

uint64_t sum_of(PageFolder::Tokens text, std::span<const uint8_t> page) {
  Checksum sum;
  sum.add(text.data(), text.size_bytes());
  sum.add(page.data(), page.size());
  return sum.value();
}

template <class T>
std::span<const uint8_t> bytes_of(const T* from, size_t count) {
  return {reinterpret_cast<const uint8_t*>(from), count * sizeof(T)};
}

}  // namespace

PageFolder::PageFolder(const Executor& executor, const PageFolderOptions& options)
    : executor_(executor), options_(options), origin_(origin_of(executor, options.version)) {
  if (!there()) return;
  remove_leftovers(options_.folder, kPages);
  for (FolderFile& file : list_files(options_.folder, kPages)) {
    bytes_ += file.bytes;
    files_.push_back({std::move(file.path), file.bytes});
  }
  trim();
}

std::string PageFolder::path_of(uint64_t salt, Tokens text, Part part) const {
  const StateHeader cache = cache_header(executor_, text.size(), part);
  Checksum sum;
  sum.add(&cache, sizeof cache);
  sum.add(&origin_, sizeof origin_);
  sum.add(&salt, sizeof salt);
  sum.add(text.data(), text.size_bytes());
  char name[64];
  format_text(name, sizeof name, "/greta-%016llx.kvpage", (unsigned long long)sum.value());
  return options_.folder + name;
}

uint64_t PageFolder::room() const {
  const uint64_t least = sizeof(PageHeader) + kPageTokens * sizeof(int32_t) + executor_.page_bytes();
  return options_.bytes / least;
}

bool PageFolder::has(uint64_t salt, Tokens text, Part part) const {
  return access(path_of(salt, text, part).c_str(), F_OK) == 0;
}

void PageFolder::touch(uint64_t salt, Tokens text, Part part) {
  const std::string path = path_of(salt, text, part);
  touch_file(path);
  const auto listed = find(path);
  if (listed != files_.end()) std::rotate(listed, listed + 1, files_.end());
}

void PageFolder::store(uint64_t salt, Tokens text, std::span<const uint8_t> page, Part part) {
  PageHeader header;
  header.cache = cache_header(executor_, text.size(), part);
  header.origin = origin_;
  header.salt = salt;
  header.checksum = sum_of(text, page);
  const uint64_t bytes = sizeof header + text.size_bytes() + page.size();
  if (bytes > options_.bytes) return;
  std::string path = path_of(salt, text, part);
  const Status status = replace_file(path, {bytes_of(&header, 1), bytes_of(text.data(), text.size()), page});
  if (!status.ok()) {
    if (!std::exchange(warned_, true))
      executor_.model().log(LogLevel::Warning, "pages of the prefix cache are not kept: %s", error_text());
    return;
  }
  forget(path);  // another program may have removed it
  files_.push_back({std::move(path), bytes});
  bytes_ += bytes;
  trim();
}

bool PageFolder::load(uint64_t salt, Tokens text, std::span<uint8_t> page, Part part) {
  const std::string path = path_of(salt, text, part);
  PageHeader header, expected;
  expected.cache = cache_header(executor_, text.size(), part);
  expected.origin = origin_;
  expected.salt = salt;
  std::vector<int32_t> tokens(text.size());
  const uint64_t text_at = sizeof header, page_at = text_at + text.size_bytes();
  File file;
  if (!file.open(path.c_str()).ok()) return false;
  const bool read = file.size() == page_at + page.size() && file.read_at(0, &header, sizeof header).ok() &&
                    file.read_at(text_at, tokens.data(), text.size_bytes()).ok() &&
                    file.read_at(page_at, page.data(), page.size()).ok();
  expected.checksum = header.checksum;
  if (read && !memcmp(&header, &expected, sizeof header) && std::ranges::equal(tokens, text) &&
      header.checksum == sum_of(text, page)) {
    touch(salt, text, part);
    return true;
  }
  remove_file(path);
  forget(path);
  return false;
}

bool PageFolder::remove(uint64_t salt, Tokens text) {
  bool found = false;
  for (const Part part : {Part::Page, Part::NoWindow, Part::State}) {
    if (!has(salt, text, part)) continue;
    const std::string path = path_of(salt, text, part);
    remove_file(path);
    forget(path);
    found = true;
  }
  return found;
}

std::vector<PageFolder::Written>::iterator PageFolder::find(const std::string& path) {
  return std::ranges::find(files_, path, &Written::path);
}

void PageFolder::forget(const std::string& path) {
  const auto listed = find(path);
  if (listed == files_.end()) return;
  bytes_ -= listed->bytes;
  files_.erase(listed);
}

void PageFolder::trim() {
  size_t gone = 0;
  for (; bytes_ > options_.bytes && gone < files_.size(); ++gone) {
    remove_file(files_[gone].path);
    bytes_ -= files_[gone].bytes;
  }
  files_.erase(files_.begin(), files_.begin() + std::ptrdiff_t(gone));
}

}  // namespace greta
