/* A library that embeds GRETA. */
#include "../open_model.h"

int inner_run(int argc, char** argv);
int inner_run(int argc, char** argv) { return consume(argc, argv); }
