/* A shared library with all of libgreta.a in it. */
#include "../open_model.h"

__attribute__((visibility("default"))) int plugin_run(int argc, char** argv);
int plugin_run(int argc, char** argv) { return consume(argc, argv); }
