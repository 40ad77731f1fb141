/* A plugin that embeds the library. Only plugin_run is to be seen. */
#include "../open_model.h"

__attribute__((visibility("default"))) int plugin_run(int argc, char** argv);
int plugin_run(int argc, char** argv) { return consume(argc, argv); }
