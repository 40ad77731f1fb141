#pragma once
#include <filesystem>

#include "support/gguf_writer.h"

// A temporary folder that takes the place of "/".
struct FakeRoot {
  greta::test::TemporaryFolder folder;
  const std::string& path = folder.path();
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path + file).parent_path());
    folder.write(file, text);
  }
};
