/* Knows nothing of GRETA: opens the plugin at run time, uses it, closes it, and does so again. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  for (int round = 0; round < 2; ++round) {
    void* plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    int (*run)(int, char**) = NULL;
    *(void**)&run = dlsym(plugin, "plugin_run");
    if (run == NULL || run(argc, argv) != 0) return 1;
    dlclose(plugin);
  }
  return 0;
}
