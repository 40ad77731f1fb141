// Pages of the prefix cache in files, which outlive the program. A file has one page, or the state that a
// model's layers keep behind it, and the whole text up to its end, so that a page is used for the very text
// that it was computed from. Its name is a hash of the model, of what computed the page, of the salt, of the
// text and of which of both it is.
//
// Nothing in a file is trusted: its size, its header and its text must be those that this executor would have
// written, and a checksum finds damage. Who can write to the folder can change answers, since keys and values
// may be any numbers, but no more than that. Where the files together grow beyond a limit, those that were
// used least recently go. What a program that was killed has left half written is removed when the folder is
// opened. Files with other names, and those of other users, are left alone.
#pragma once
#include <string>

#include "engine/executor/executor.h"

namespace greta {

struct PageFolderOptions {
  std::string folder = {};  // empty: there is none
  uint64_t bytes = 0;       // of all files together
  uint32_t version = 0;     // of the library; pages of another one are not used
};

class PageFolder {
 public:
  using Tokens = std::span<const int32_t>;  // a text from its beginning to the end of the page

  PageFolder(const Executor& executor, const PageFolderOptions& options);

  bool there() const { return !options_.folder.empty(); }
  uint64_t room() const;  // how many pages it may have at most
  // What a file has: a page, one without what layers with a window have of it, or the state behind it.
  enum class Part : uint8_t { Page, NoWindow, State };
  bool has(uint64_t salt, Tokens text, Part part = Part::Page) const;
  void touch(uint64_t salt, Tokens text, Part part = Part::Page);  // the page was used now
  // Writes a page of Executor::page_bytes(), or a state of Executor::kept_state_bytes(). The first failure is
  // a warning in the log, the others are silent.
  void store(uint64_t salt, Tokens text, std::span<const uint8_t> page, Part part = Part::Page);
  // Reads a page. Returns false where there is none, or a damaged one, which is removed.
  bool load(uint64_t salt, Tokens text, std::span<uint8_t> page, Part part = Part::Page);
  bool remove(uint64_t salt, Tokens text);  // all of its files; false: there is none

 private:
  struct Written {
    std::string path;
    uint64_t bytes;
  };
  std::string path_of(uint64_t salt, Tokens text, Part part) const;
  std::vector<Written>::iterator find(const std::string& path);
  void forget(const std::string& path);
  void trim();

  const Executor& executor_;
  const PageFolderOptions options_;
  const uint64_t origin_;       // a checksum of what computes the pages
  std::vector<Written> files_;  // the one that was used least recently first
  uint64_t bytes_ = 0;
  bool warned_ = false;
};

}  // namespace greta
