// A file that is written from front to back, and that exists at the end only if it is whole.
#pragma once
#include <cstddef>
#include <cstdio>
#include <string>

namespace greta::cli {

void make_folders(const std::string& path);  // those of a file that are not there, for their owner alone

class OutputFile {  // everything here throws Failed
 public:
  enum class Readers { Anyone, Owner };  // as the umask allows, or only who writes it
  // Failures name the file `shown`; "" is `path`.
  explicit OutputFile(std::string path, Readers readers = Readers::Anyone, std::string shown = "");
  ~OutputFile();  // removes the file unless it was finished
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(const void* data, size_t bytes);
  void finish();
  void finish_as(const std::string& path);  // replaces the file at `path`, which stays on a failure

 private:
  void check(bool ok) const;
  std::string path_, shown_;
  std::FILE* file_;
  bool finished_ = false;
};

// Writes a text to a file as a whole, in place of what stood there, or not at all. A device or a pipe is
// written to as it is.
void write_whole(const std::string& path, const std::string& text);

}  // namespace greta::cli
