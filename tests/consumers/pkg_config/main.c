/* A C program, linked by the C compiler with what pkg-config says. */
#include "../open_model.h"

int main(int argc, char** argv) { return consume(argc, argv); }
