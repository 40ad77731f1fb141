#pragma once
#include <cstdlib>
#include <set>

#include "support/devices.h"

// Orders to the mock of HIP's runtime (tests/mock_hip/orders.h), which end with this object. Skips the test
// if this build has no HIP kernels.
class HipOrders {
 public:
  HipOrders() {
    if (!is_there("hip", with_mock_hip())) SKIP("no HIP kernels: " << greta::error_text());
  }
  ~HipOrders() { none(); }
  HipOrders(const HipOrders&) = delete;
  HipOrders& operator=(const HipOrders&) = delete;

  // "FAIL", "hipMalloc 3 2": hipMalloc fails with error 2 after three calls.
  void set(const char* what, const char* how) {
    const std::string name = std::string("MOCK_HIP_") + what;
    setenv(name.c_str(), how, 1);
    names_.insert(name);
  }
  void none() {
    for (const std::string& name : names_) unsetenv(name.c_str());
    names_.clear();
  }

  greta::Status open(greta::Device** out, const greta::DeviceOptions& options = with_mock_hip()) {
    return greta::open_device("hip0", options, out);
  }

 private:
  std::set<std::string> names_;
};
