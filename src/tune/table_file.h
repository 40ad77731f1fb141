// The file of a device's tuning table in a folder, and what is kept beside it while a tune is at work.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tune/table.h"

namespace greta {

class TableFile {
 public:
  // The file need not be there.
  TableFile(const std::string& folder, const TableOf& of);
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  const std::string& path() const { return path_; }

  // Reads the table. *why says why there is none to use, though there is one: it is damaged, or another
  // driver's; "" if there is nothing to say. A table that is not used is empty, and of this device.
  void read(TuningTable* out, std::string* why) const;
  // Replaces the file as a whole.
  Status write(const TuningTable& table) const;

  // Keeps other tunes of this device out until this object ends. Fails with Code::File if there is one, in
  // this process or another.
  Status lock();
  // Notes what runs for the first time, so that a later run knows if the program did not survive it; null:
  // nothing runs. The file has to be locked.
  Status note(const std::string& entry, const KernelChoice* choice);
  // Whether an earlier run ended while it ran.
  bool ended_in(const std::string& entry, const KernelChoice& choice) const;

 private:
  Status write_notes(const std::string& last) const;
  std::string folder_, path_, notes_path_;
  TableOf of_;
  std::vector<std::string> notes_;
  int lock_ = -1;
};

}  // namespace greta
