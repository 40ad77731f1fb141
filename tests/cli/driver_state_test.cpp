// What is remembered of drivers that did well: it is taken once, and counts only as long as all is the same.
#include "../../tools/cli/driver_state.h"

#include <catch2/catch_test_macros.hpp>

#include "../../tools/cli/console.cpp"
#include "../../tools/cli/driver_state.cpp"
#include "../../tools/cli/output_file.cpp"
#include "../../tools/cli/wrap.cpp"

extern const char greta::cli::kBuildCommit[] = "a commit";  // which the build of greta-cli writes

namespace fs = std::filesystem;
using greta::cli::DriverState;

namespace {

struct Folder {
  const fs::path path = fs::temp_directory_path() / ("greta-driver-state-" + std::to_string(::getpid()));
  const std::string driver = (path / "libdriver of mine.so.1").string();
  Folder() {
    fs::remove_all(path);
    fs::create_directories(path);
    write("a driver");
  }
  ~Folder() { fs::remove_all(path); }
  void write(const char* text) const { std::ofstream(driver) << text; }
  void remember() const {
    DriverState state((path / "cache").string());
    state.consist_of({driver});
    state.remember("vulkan1");
  }
  std::string take() const { return DriverState((path / "cache").string()).take(); }
};

}  // namespace

TEST_CASE("driver state: a good start is remembered for one more", "[cli]") {
  const Folder folder;
  CHECK(folder.take() == "");
  folder.remember();
  DriverState next((folder.path / "cache").string());
  CHECK(next.take() == "vulkan1");
  CHECK(folder.take() == "");  // until that one has opened its device
  next.remember("vulkan0");
  CHECK(folder.take() == "vulkan0");
}

TEST_CASE("driver state: nothing counts once a driver or the environment is another", "[cli]") {
  const Folder folder;
  folder.remember();
  folder.write("a newer driver");
  CHECK(folder.take() == "");
  CHECK(folder.take() == "");
  folder.remember();
  fs::remove(folder.driver);
  CHECK(folder.take() == "");
  folder.write("a driver");
  folder.remember();
  setenv("VK_DRIVER_FILES", "/another.json", 1);
  const std::string device = folder.take();
  unsetenv("VK_DRIVER_FILES");
  CHECK(device == "");
}

TEST_CASE("driver state: without libraries or a folder nothing is remembered", "[cli]") {
  const Folder folder;
  DriverState((folder.path / "cache").string()).remember("vulkan0");
  CHECK(folder.take() == "");
  DriverState nowhere("");
  nowhere.consist_of({folder.driver});
  nowhere.remember("vulkan0");
  CHECK(nowhere.take() == "");
  const std::vector<std::string> mapped = greta::cli::mapped_libraries();
  CHECK(std::any_of(mapped.begin(), mapped.end(),
                    [](const std::string& path) { return path.find("libc.so") != path.npos; }));
}
