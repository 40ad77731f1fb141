/* Computes frames on one queue of a Vulkan device and draws them on another: the device, its buffer and its
 * semaphore are this program's, and the library adopts them. Where the device has one queue alone, both use
 * it in turns, under a lock. usage: image [DEVICE [FRAMES [FILE.pgm]]], by default 0 3; the last frame is
 * written. It ends with 77 where there is no such device. */
#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <greta_compute.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan_core.h>

#define OPTIONS(type, name)      \
  type name;                     \
  memset(&name, 0, sizeof name); \
  name.struct_size = sizeof name
#define VULKAN(type, name, tag)  \
  type name;                     \
  memset(&name, 0, sizeof name); \
  name.sType = VK_STRUCTURE_TYPE_##tag

/* The functions that the renderer calls. */
#define FUNCTIONS(F)                                                                                        \
  F(vkCreateInstance) F(vkDestroyInstance) F(vkEnumeratePhysicalDevices) F(vkGetPhysicalDeviceFeatures2)    \
  F(vkGetPhysicalDeviceProperties) F(vkGetPhysicalDeviceQueueFamilyProperties)                              \
  F(vkGetPhysicalDeviceMemoryProperties) F(vkCreateDevice) F(vkDestroyDevice) F(vkGetDeviceQueue)           \
  F(vkCreateBuffer) F(vkDestroyBuffer) F(vkGetBufferMemoryRequirements) F(vkBindBufferMemory)               \
  F(vkCreateImage) F(vkDestroyImage) F(vkGetImageMemoryRequirements) F(vkBindImageMemory)                   \
  F(vkAllocateMemory) F(vkFreeMemory) F(vkMapMemory) F(vkCreateSemaphore) F(vkDestroySemaphore)             \
  F(vkCreateCommandPool) F(vkDestroyCommandPool) F(vkAllocateCommandBuffers) F(vkBeginCommandBuffer)        \
  F(vkEndCommandBuffer) F(vkCmdPipelineBarrier) F(vkCmdCopyBufferToImage) F(vkCmdCopyImageToBuffer)         \
  F(vkQueueSubmit2) F(vkWaitSemaphores) F(vkDeviceWaitIdle)
#define DECLARE(name) static PFN_##name name;
FUNCTIONS(DECLARE)

enum { kWidth = 256, kHeight = 128, kBytes = kWidth * kHeight * 4 };

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queues[2]; /* that of the library, that of the renderer */
static uint32_t family;
static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static VkSemaphore semaphore;
static VkBuffer shared, readback;
static VkImage image;
static VkDeviceMemory memories[3];
static uint32_t memory_count;
static VkCommandPool pool;
static VkCommandBuffer drawing;
static float* pixels; /* [kHeight][kWidth] of the readback buffer */

static void end(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}
static void vk(VkResult result, const char* what) {
  if (result != VK_SUCCESS) end(what);
}
static void need(greta_status status) {
  if (status) end(greta_error_text());
}
static void lock_queue(void* user) { (void)user, pthread_mutex_lock(&queue_mutex); }
static void unlock_queue(void* user) { (void)user, pthread_mutex_unlock(&queue_mutex); }

/* --- the renderer, which knows nothing of the library */

static PFN_vkGetInstanceProcAddr open_instance(uint32_t index) {
  VULKAN(VkApplicationInfo, application, APPLICATION_INFO);
  VULKAN(VkInstanceCreateInfo, info, INSTANCE_CREATE_INFO);
  VkPhysicalDevice found[8];
  uint32_t count = 8;
  void* const library = dlopen("libvulkan.so.1", RTLD_NOW);
  PFN_vkGetInstanceProcAddr get;
  if (!library) exit(77);
  *(void**)&get = dlsym(library, "vkGetInstanceProcAddr");
  application.apiVersion = VK_API_VERSION_1_3;
  info.pApplicationInfo = &application;
  vkCreateInstance = (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
  if (vkCreateInstance(&info, NULL, &instance)) exit(77);
#define FIND(name) name = (PFN_##name)get(instance, #name);
  FUNCTIONS(FIND)
  if (vkEnumeratePhysicalDevices(instance, &count, found) < 0 || index >= count) exit(77);
  physical = found[index];
  return get;
}

/* Two queues of a family that draws and computes, or its only one twice. */
static void open_device(void) {
  VkQueueFamilyProperties families[16];
  const float priorities[2] = {1, 1};
  const VkQueueFlags both = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT;
  uint32_t count = 16, i;
  VULKAN(VkPhysicalDeviceFeatures2, has, PHYSICAL_DEVICE_FEATURES_2);
  VULKAN(VkPhysicalDeviceVulkan11Features, v11, PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  VULKAN(VkPhysicalDeviceVulkan12Features, v12, PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  VULKAN(VkPhysicalDeviceVulkan13Features, v13, PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
  VULKAN(VkDeviceQueueCreateInfo, queue, DEVICE_QUEUE_CREATE_INFO);
  VULKAN(VkDeviceCreateInfo, info, DEVICE_CREATE_INFO);
  has.pNext = &v11, v11.pNext = &v12, v12.pNext = &v13;
  vkGetPhysicalDeviceFeatures2(physical, &has);
  has.features.robustBufferAccess = v13.robustImageAccess = VK_FALSE;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  for (i = 0; i < count; ++i)
    if ((families[i].queueFlags & both) == both) break;
  if (i == count) exit(77);
  family = queue.queueFamilyIndex = i;
  queue.queueCount = families[i].queueCount > 1 ? 2 : 1;
  queue.pQueuePriorities = priorities;
  info.pNext = &has;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  vk(vkCreateDevice(physical, &info, NULL, &device), "vkCreateDevice");
  vkGetDeviceQueue(device, family, 0, &queues[0]);
  vkGetDeviceQueue(device, family, queue.queueCount - 1, &queues[1]);
}

static VkDeviceMemory memory_for(const VkMemoryRequirements* needs, VkMemoryPropertyFlags wanted) {
  VkPhysicalDeviceMemoryProperties has;
  VULKAN(VkMemoryAllocateFlagsInfo, flags, MEMORY_ALLOCATE_FLAGS_INFO);
  VULKAN(VkMemoryAllocateInfo, info, MEMORY_ALLOCATE_INFO);
  uint32_t type = 0;
  vkGetPhysicalDeviceMemoryProperties(physical, &has);
  while (!(needs->memoryTypeBits >> type & 1) || (has.memoryTypes[type].propertyFlags & wanted) != wanted)
    if (++type == has.memoryTypeCount) end("no memory of the type that is wanted");
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  info.pNext = &flags;
  info.allocationSize = needs->size;
  info.memoryTypeIndex = type;
  vk(vkAllocateMemory(device, &info, NULL, &memories[memory_count]), "vkAllocateMemory");
  return memories[memory_count++];
}

static VkDeviceMemory make_buffer(VkBufferUsageFlags usage, VkMemoryPropertyFlags wanted, VkBuffer* out) {
  VkMemoryRequirements needs;
  VkDeviceMemory memory;
  VULKAN(VkBufferCreateInfo, info, BUFFER_CREATE_INFO);
  info.size = kBytes;
  info.usage = usage;
  vk(vkCreateBuffer(device, &info, NULL, out), "vkCreateBuffer");
  vkGetBufferMemoryRequirements(device, *out, &needs);
  memory = memory_for(&needs, wanted);
  vk(vkBindBufferMemory(device, *out, memory, 0), "vkBindBufferMemory");
  return memory;
}

static void make_image(void) {
  VkMemoryRequirements needs;
  VULKAN(VkImageCreateInfo, info, IMAGE_CREATE_INFO);
  info.imageType = VK_IMAGE_TYPE_2D;
  info.format = VK_FORMAT_R32_SFLOAT;
  info.extent.width = kWidth, info.extent.height = kHeight, info.extent.depth = 1;
  info.mipLevels = info.arrayLayers = 1;
  info.samples = VK_SAMPLE_COUNT_1_BIT;
  info.tiling = VK_IMAGE_TILING_OPTIMAL;
  info.usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
  vk(vkCreateImage(device, &info, NULL, &image), "vkCreateImage");
  vkGetImageMemoryRequirements(device, image, &needs);
  vk(vkBindImageMemory(device, image, memory_for(&needs, 0), 0), "vkBindImageMemory");
}

static void change_image(VkImageLayout from, VkImageLayout to) {
  VULKAN(VkImageMemoryBarrier, barrier, IMAGE_MEMORY_BARRIER);
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.oldLayout = from;
  barrier.newLayout = to;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = image;
  barrier.subresourceRange.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT;
  barrier.subresourceRange.levelCount = barrier.subresourceRange.layerCount = 1;
  vkCmdPipelineBarrier(drawing, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0,
                       NULL, 1, &barrier);
}

/* The frame becomes an image, and the image is read back. */
static void record_drawing(void) {
  VkBufferImageCopy copy;
  VULKAN(VkCommandPoolCreateInfo, of_pool, COMMAND_POOL_CREATE_INFO);
  VULKAN(VkCommandBufferAllocateInfo, info, COMMAND_BUFFER_ALLOCATE_INFO);
  VULKAN(VkCommandBufferBeginInfo, begin, COMMAND_BUFFER_BEGIN_INFO);
  VULKAN(VkMemoryBarrier, host, MEMORY_BARRIER);
  of_pool.queueFamilyIndex = family;
  vk(vkCreateCommandPool(device, &of_pool, NULL, &pool), "vkCreateCommandPool");
  info.commandPool = pool;
  info.commandBufferCount = 1;
  vk(vkAllocateCommandBuffers(device, &info, &drawing), "vkAllocateCommandBuffers");
  memset(&copy, 0, sizeof copy);
  copy.imageSubresource.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT;
  copy.imageSubresource.layerCount = 1;
  copy.imageExtent.width = kWidth, copy.imageExtent.height = kHeight, copy.imageExtent.depth = 1;
  host.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  vk(vkBeginCommandBuffer(drawing, &begin), "vkBeginCommandBuffer");
  change_image(VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
  vkCmdCopyBufferToImage(drawing, shared, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &copy);
  change_image(VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  vkCmdCopyImageToBuffer(drawing, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, readback, 1, &copy);
  vkCmdPipelineBarrier(drawing, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &host, 0,
                       NULL, 0, NULL);
  vk(vkEndCommandBuffer(drawing), "vkEndCommandBuffer");
}

static void open_renderer(void) {
  VULKAN(VkSemaphoreTypeCreateInfo, type, SEMAPHORE_TYPE_CREATE_INFO);
  VULKAN(VkSemaphoreCreateInfo, info, SEMAPHORE_CREATE_INFO);
  void* mapped;
  open_device();
  make_buffer(VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                  VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
              VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, &shared);
  vk(vkMapMemory(device,
                 make_buffer(VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                             VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                             &readback),
                 0, kBytes, 0, &mapped),
     "vkMapMemory");
  pixels = mapped;
  make_image();
  record_drawing();
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  info.pNext = &type;
  vk(vkCreateSemaphore(device, &info, NULL, &semaphore), "vkCreateSemaphore");
}

static void close_renderer(void) {
  vkDeviceWaitIdle(device);
  vkDestroySemaphore(device, semaphore, NULL);
  vkDestroyCommandPool(device, pool, NULL);
  vkDestroyImage(device, image, NULL);
  vkDestroyBuffer(device, shared, NULL);
  vkDestroyBuffer(device, readback, NULL);
  while (memory_count) vkFreeMemory(device, memories[--memory_count], NULL);
  vkDestroyDevice(device, NULL);
  vkDestroyInstance(instance, NULL);
}

/* Draws when the semaphore has `after`, and lets it have after + 1. */
static void draw(uint64_t after) {
  VULKAN(VkSemaphoreSubmitInfo, wait, SEMAPHORE_SUBMIT_INFO);
  VULKAN(VkSemaphoreSubmitInfo, signal, SEMAPHORE_SUBMIT_INFO);
  VULKAN(VkCommandBufferSubmitInfo, commands, COMMAND_BUFFER_SUBMIT_INFO);
  VULKAN(VkSubmitInfo2, info, SUBMIT_INFO_2);
  wait.semaphore = signal.semaphore = semaphore;
  wait.value = after, signal.value = after + 1;
  wait.stageMask = signal.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  commands.commandBuffer = drawing;
  info.waitSemaphoreInfoCount = info.signalSemaphoreInfoCount = info.commandBufferInfoCount = 1;
  info.pWaitSemaphoreInfos = &wait;
  info.pSignalSemaphoreInfos = &signal;
  info.pCommandBufferInfos = &commands;
  lock_queue(NULL);
  vk(vkQueueSubmit2(queues[1], 1, &info, VK_NULL_HANDLE), "vkQueueSubmit2");
  unlock_queue(NULL);
}

/* --- what the library computes: pixel [y][x] of frame f is (y / height) * (x / width) + f / 8 */

static greta_runtime* runtime;
static greta_compute* compute;

static greta_tensor matrix(uint64_t rows, uint64_t columns, greta_buffer buffer, uint64_t offset) {
  greta_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.type = GRETA_TYPE_F32;
  tensor.rank = 2;
  tensor.shape[0] = rows, tensor.shape[1] = columns;
  tensor.buffer = buffer, tensor.offset = offset;
  return tensor;
}

static void adopt(PFN_vkGetInstanceProcAddr get, greta_buffer* frame, greta_timeline* turns) {
  OPTIONS(greta_runtime_options, options);
  OPTIONS(greta_host_device, vulkan);
  OPTIONS(greta_compute_options, open);
  OPTIONS(greta_adoption, adoption);
  options.device = "cpu"; /* nothing else is opened */
  options.threads = 1;
  vulkan.get_instance_proc_addr = (void (*)(void))get;
  vulkan.instance = instance, vulkan.physical_device = physical, vulkan.device = device;
  vulkan.queue = queues[0], vulkan.queue_family = family;
  vulkan.lock = lock_queue, vulkan.unlock = unlock_queue;
  open.host = &vulkan;
  need(greta_runtime_open(&options, &runtime));
  need(greta_compute_open(runtime, &open, &compute));
  adoption.origin = GRETA_ORIGIN_HANDLE;
  memcpy(&adoption.handle, &shared, sizeof shared);
  adoption.bytes = kBytes;
  need(greta_buffer_adopt(compute, &adoption, frame));
  memcpy(&adoption.handle, &semaphore, sizeof semaphore);
  adoption.bytes = 0;
  need(greta_timeline_adopt(compute, &adoption, turns));
}

/* [kHeight][2] and [2][kWidth], whose product is a frame. The second column of the first one is the time. */
static void write_factors(float* factors, uint32_t frame) {
  float* const b = factors + 2 * kHeight;
  uint32_t i;
  for (i = 0; i < kHeight; ++i) factors[2 * i] = (float)i / kHeight, factors[2 * i + 1] = (float)frame / 8;
  for (i = 0; i < kWidth; ++i) b[i] = (float)i / kWidth, b[kWidth + i] = 1;
}

static void write_file(const char* path) {
  FILE* const file = fopen(path, "wb");
  uint32_t i;
  if (!file) end("the file cannot be written");
  fprintf(file, "P5 %d %d 255\n", kWidth, kHeight);
  for (i = 0; i < kWidth * kHeight; ++i) fputc((int)(pixels[i] < 1 ? pixels[i] * 255 : 255), file);
  fclose(file);
}

int main(int argc, char** argv) {
  static float factors[2 * kHeight + 2 * kWidth];
  const uint32_t frames = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 3;
  const PFN_vkGetInstanceProcAddr get = open_instance(argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0);
  uint64_t scratch_bytes, turn = 0;
  uint32_t f, i, wrong = 0;
  greta_buffer frame, upload, scratch = {0, 0};
  greta_timeline turns;
  greta_stream stream;
  OPTIONS(greta_buffer_options, options);
  OPTIONS(greta_gemm_call, call);
  VULKAN(VkSemaphoreWaitInfo, drawn, SEMAPHORE_WAIT_INFO);
  open_renderer();
  adopt(get, &frame, &turns);
  options.bytes = sizeof factors;
  need(greta_buffer_open(compute, &options, &upload));
  need(greta_stream_open(compute, &stream));
  call.alpha = 1;
  call.a = matrix(kHeight, 2, upload, 0);
  call.b = matrix(2, kWidth, upload, 2 * kHeight * sizeof(float));
  call.y = matrix(kHeight, kWidth, frame, 0);
  need(greta_gemm_scratch(compute, &call, &scratch_bytes));
  options.bytes = scratch_bytes;
  if (scratch_bytes) need(greta_buffer_open(compute, &options, &scratch));
  drawn.semaphoreCount = 1;
  drawn.pSemaphores = &semaphore;
  drawn.pValues = &turn;
  for (f = 0; f < frames; ++f) {
    write_factors(factors, f);
    need(greta_buffer_write(compute, upload, 0, factors, sizeof factors));
    if (f) need(greta_stream_wait_for(compute, stream, turns, turn)); /* the last frame has been drawn */
    need(greta_gemm(compute, stream, &call, scratch, 0));
    need(greta_stream_signal(compute, stream, turns, turn + 1));
    draw(turn + 1);
    turn += 2;
    vk(vkWaitSemaphores(device, &drawn, UINT64_MAX), "vkWaitSemaphores");
    for (i = 0; i < kWidth * kHeight; ++i) {
      const float x = (float)(i % kWidth) / kWidth, y = (float)(i / kWidth) / kHeight;
      const float error = pixels[i] - (x * y + (float)f / 8);
      wrong += !(error < 1e-3f && error > -1e-3f);
    }
  }
  if (argc > 3) write_file(argv[3]);
  printf("%u frames on %s, %u pixels are wrong\n", frames,
         queues[0] == queues[1] ? "one queue" : "two queues", wrong);
  need(greta_stream_wait(compute, stream));
  greta_compute_close(compute);
  greta_runtime_close(runtime);
  close_renderer();
  return wrong != 0;
}
