#include "radv/baseline.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace greta::test {

static const char kHeader[] = "# pipeline\tneeds\tlanes\tvgprs\tsgprs\tshared\tinstructions\twanted\n";

bool read_baseline(const std::string& path, Baseline* out) {
  std::ifstream file(path);
  if (!file) return false;
  for (std::string text; std::getline(file, text);) {
    const size_t tab = text.find('\t');
    if (text.empty() || text[0] == '#' || tab == std::string::npos) continue;
    BaselineLine line;
    Compiled& c = line.compiled;
    std::istringstream fields(text.substr(tab));
    fields >> line.needs >> c.lanes >> c.vgprs >> c.sgprs >> c.shared_bytes >> c.instructions >> c.wanted;
    if (fields) (*out)[text.substr(0, tab)] = line;
  }
  return true;
}

Status write_baseline(const std::string& path, const Baseline& baseline) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::ofstream file(path);
  file << kHeader;
  for (const auto& [name, line] : baseline) {
    const Compiled& c = line.compiled;
    file << name;
    for (const uint32_t value :
         {line.needs, c.lanes, c.vgprs, c.sgprs, c.shared_bytes, c.instructions, c.wanted})
      file << '\t' << value;
    file << '\n';
  }
  file.close();
  return file ? Status{} : fail(Code::File, "%s: %s", path.c_str(), strerror(errno));
}

}  // namespace greta::test
