#include "support/op_rig.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_translate_exception.hpp>

CATCH_TRANSLATE_EXCEPTION(const greta::selftest::Failed& failed) { return failed.what; }

namespace greta::test {

RigDevice::RigDevice(const std::string& name, uint32_t features_mask, uint32_t threads) {
  DeviceOptions options;
  options.features_mask = features_mask;
  options.threads = threads;
  options.driver_library = test_library();
  const bool checked = name.starts_with("checked ");
  Device* opened = nullptr;
  expect(open_device(name.c_str() + (checked ? 8 : 0), options, &opened).ok(), error_text());
  device.reset(opened);
  if (!checked) return;
  inner = std::move(device);
  expect(open_checked_device(inner.get(), &opened).ok(), error_text());
  device.reset(opened);
}

}  // namespace greta::test
