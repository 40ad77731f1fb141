/* Opens two plugins, whose symbols are for all. Neither may show the library that is in it, nor take the
 * functions of this program, which have the library's names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

uint32_t greta_version(void);
uint32_t greta_version(void) { return 4242424; }
int greta_runtime_open(const void* options, void** out);
int greta_runtime_open(const void* options, void** out) { return (void)options, (void)out, 77; }

static void* open_plugin(const char* path) {
  void* plugin = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (plugin == NULL) return fprintf(stderr, "%s\n", dlerror()), NULL;
  static const char* const hidden[] = {"greta_version", "greta_runtime_open", "greta_session_generate"};
  for (int i = 0; i < 3; ++i) {
    if (dlsym(plugin, hidden[i]) == NULL) continue;
    fprintf(stderr, "%s shows %s\n", path, hidden[i]);
    return NULL;
  }
  return plugin;
}

static int run_plugin(void* plugin, int argc, char** argv) {
  int (*run)(int, char**) = NULL;
  *(void**)&run = dlsym(plugin, "plugin_run");
  return run == NULL || run(argc, argv) != 0;
}

int main(int argc, char** argv) {
  void* first = open_plugin(FIRST);
  void* second = open_plugin(SECOND);
  if (first == NULL || second == NULL) return 1;
  if (run_plugin(first, argc, argv) || run_plugin(second, argc, argv)) return 1;
  dlclose(first);
  return run_plugin(second, argc, argv) || dlclose(second) != 0;
}
