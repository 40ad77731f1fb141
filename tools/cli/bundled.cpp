// Finds the bundled model beside the program: <prefix>/bin/greta-cli has it in <prefix>/share/greta/models.
// The build tree is laid out in the same way.
#include "bundled.h"

#include <filesystem>

namespace greta::cli {

std::string bundled_model_path() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const auto path = program.parent_path().parent_path() / "share" / "greta" / "models" / kBundledModel;
  return std::filesystem::exists(path, error) ? path.string() : "";
}

}  // namespace greta::cli
