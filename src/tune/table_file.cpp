#include "tune/table_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "tune/built_in_tables.h"

namespace greta {

constexpr uint64_t kMostTableBytes = 64u << 20, kMostNoteBytes = 1u << 20;

// Reads a whole file; false if there is none, or none that can be read.
static bool read_all(const std::string& path, uint64_t most, std::string* out) {
  File file;
  struct stat about;
  if (stat(path.c_str(), &about) != 0) return false;
  const bool opened = file.open(path.c_str()).ok() && file.size() <= most;
  if (opened) out->resize(file.size());
  if (opened && file.read_at(0, out->data(), out->size()).ok()) return true;
  clear_error_text();
  out->clear();
  return false;
}

static std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

static std::string note_of(const std::string& entry, const KernelChoice& choice) {
  return entry + "|" + choice.kernel + "|" + choice.target + "|" + std::to_string(choice.tile) + "x" +
         std::to_string(choice.tile_tokens) + "/" + std::to_string(choice.splits);
}

TableFile::TableFile(const std::string& folder, const TableOf& of)
    : folder_(folder), path_(folder + "/" + table_name(of)), notes_path_(path_ + ".trying"), of_(of) {}

TableFile::~TableFile() {
  if (lock_ >= 0) close(lock_);
}

// Without a file it is the table that was compiled in, if there is one.
void TableFile::read(TuningTable* out, std::string* why) const {
  *out = {};
  why->clear();
  std::string text;
  if (read_all(path_, kMostTableBytes, &text)) {
    const bool whole = TuningTable::read(text, out).ok();
    if (whole && out->of == of_) return;
    *why = "tuning table " + path_ +
           " is not used: " + (whole ? "it is the table of another device" : error_text());
    clear_error_text();
  } else if (find_table(built_in_tables(), of_, out)) {
    return;
  } else {
    const std::string device = folder_ + "/" + table_name_of_device(of_);
    for (const FolderFile& file : list_files(folder_, ".jsonl"))
      if (file.path.starts_with(device) && file.path != path_)
        *why = "tuning table " + file.path +
               " is not used: it is of another driver or version of GRETA (greta-cli tune makes one)";
  }
  *out = {};
  out->of = of_;
}

Status TableFile::write(const TuningTable& table) const {
  const std::string text = table.text();
  return replace_file(path_, {bytes_of(text)});
}

Status TableFile::lock() {
  if (struct stat about; stat(notes_path_.c_str(), &about) != 0)
    GRETA_TRY(write_notes(""));  // makes the folder, too
  lock_ = open((path_ + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock_ < 0) return fail(Code::File, "%s.lock: %s", path_.c_str(), errno_text(errno));
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    close(lock_);
    lock_ = -1;
    return fail(Code::File, "another tune of this device is at work (%s.lock)", path_.c_str());
  }
  std::string text;
  if (!read_all(notes_path_, kMostNoteBytes, &text)) return {};
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    notes_.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return {};
}

Status TableFile::write_notes(const std::string& last) const {
  std::string text;
  for (const std::string& note : notes_) text += note + "\n";
  if (!last.empty()) text += last + "\n";
  return replace_file(notes_path_, {bytes_of(text)});
}

Status TableFile::note(const std::string& entry, const KernelChoice* choice) {
  return write_notes(choice ? note_of(entry, *choice) : "");
}

bool TableFile::ended_in(const std::string& entry, const KernelChoice& choice) const {
  return std::ranges::find(notes_, note_of(entry, choice)) != notes_.end();
}

}  // namespace greta
