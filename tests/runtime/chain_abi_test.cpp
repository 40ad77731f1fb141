// The chain's memory is described twice: for kernels and for the backend, which includes no kernel's header.
#include <catch2/catch_test_macros.hpp>
#include <cstddef>

#include "backends/vulkan/chain.h"
#include "kernels/abi/chain.h"

using greta::VulkanChainCell;
using greta::VulkanChainCheck;

TEST_CASE("chain: the backend and the kernels agree on cells and on the block of the check",
          "[runtime][vulkan]") {
  CHECK(VulkanChainCell::kStride == kChainStride);
  CHECK(greta::VulkanChain::kBehind == kChainBehind);
  CHECK(VulkanChainCell::kMaxGroups == kChainGroups);
  CHECK(VulkanChainCell::kMaxReplays == kChainReplays);
  CHECK(sizeof(VulkanChainCell) <= VulkanChainCell::kStride);
  CHECK(sizeof(VulkanChainCell) == sizeof(ChainCell));
  CHECK(offsetof(VulkanChainCell, stuck) == offsetof(ChainCell, stuck));
  CHECK(offsetof(VulkanChainCell, groups) == offsetof(ChainCell, groups));
  CHECK(offsetof(VulkanChainCell, ended) == offsetof(ChainCell, ended));
  CHECK(sizeof(VulkanChainCheck) == sizeof(ChainCheckBlock));
  CHECK(offsetof(VulkanChainCheck, values) == offsetof(ChainCheckBlock, values));
  CHECK(offsetof(VulkanChainCheck, wrong) == offsetof(ChainCheckBlock, wrong));
  CHECK(offsetof(VulkanChainCheck, chain) == offsetof(ChainCheckBlock, chain));
  CHECK(offsetof(VulkanChainCheck, stage) == offsetof(ChainCheckBlock, stage));
  CHECK(offsetof(VulkanChainCheck, groups) == offsetof(ChainCheckBlock, groups));
}
