// What drivers depend on: their files, those that say which there are, devices, kernel, environment and this
// program. Where all is as it was when a GPU was chosen and opened well, no driver is asked which GPUs there
// are, neither in a child process nor in this one.
#pragma once
#include <string>
#include <vector>

namespace greta::cli {

std::vector<std::string> mapped_libraries();  // by this process

class DriverState {
 public:
  explicit DriverState(const std::string& folder);  // of the cache; "": nothing is remembered

  // The device of the last start that remembered one, if all is as it was then; "": there is none. What that
  // start remembered is taken away, so that after one that dies or hangs drivers are asked again.
  std::string take();
  // The libraries that drivers consist of. Without any, nothing is remembered.
  void consist_of(std::vector<std::string> libraries) { libraries_ = std::move(libraries); }
  void remember(const std::string& device) const;

 private:
  std::string text(const std::string& device) const;
  std::string path_;
  std::vector<std::string> libraries_;
};

}  // namespace greta::cli
