// Structs of extensions that the oldest supported headers (1.3.239) do not have. They have names of their
// own, so that they do not clash with newer headers. Layouts and numbers are those of the Vulkan registry.
#pragma once
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

namespace greta {

// VK_KHR_cooperative_matrix
constexpr char kCooperativeMatrixExtension[] = "VK_KHR_cooperative_matrix";
constexpr auto kCooperativeMatrixFeaturesType = VkStructureType(1000506000);
constexpr auto kCooperativeMatrixPropertiesType = VkStructureType(1000506001);

struct CooperativeMatrixFeatures {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};

struct CooperativeMatrixProperties {
  VkStructureType sType;
  void* pNext;
  uint32_t m, n, k;
  uint32_t a_type, b_type, c_type, result_type;  // VkComponentTypeKHR
  VkBool32 saturating;
  uint32_t scope;  // VkScopeKHR
};
constexpr uint32_t kComponentFloat16 = 0, kComponentFloat32 = 1, kScopeSubgroup = 3;

using GetCooperativeMatrixProperties = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*,
                                                            CooperativeMatrixProperties*);

}  // namespace greta
