/* A program with functions of the names that other engines and drivers have, which it exports. No copy of the
 * library may call one: each ends the program. */
#include <stdlib.h>

#include "../open_model.h"

int outer_run(int argc, char** argv);

#define NEIGHBOUR(name) \
  void name(void);      \
  void name(void) {     \
    puts(#name);        \
    abort();            \
  }
NEIGHBOUR(ggml_init)
NEIGHBOUR(ggml_free)
NEIGHBOUR(ggml_backend_cpu_init)
NEIGHBOUR(gguf_init_from_file)
NEIGHBOUR(llama_backend_init)
NEIGHBOUR(llama_model_load_from_file)
NEIGHBOUR(llama_decode)
NEIGHBOUR(whisper_init_from_file)
NEIGHBOUR(vkGetInstanceProcAddr)
NEIGHBOUR(vkCreateInstance)
NEIGHBOUR(vkEnumerateInstanceVersion)
NEIGHBOUR(hipInit)
NEIGHBOUR(hipGetDeviceCount)
NEIGHBOUR(hipMalloc)
NEIGHBOUR(hipModuleLoadData)

int main(int argc, char** argv) {
  uint32_t count = 0;
  if (!is_ok("greta_device_count", greta_device_count(&count)) || count == 0) return 1;
  return consume(argc, argv) || outer_run(argc, argv) || consume(argc, argv);
}
