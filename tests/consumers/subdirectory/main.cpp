// A program that builds GRETA as part of itself. It sees greta.h and nothing else of GRETA's folders.
#include "../open_model.h"

#if __has_include("platform/platform.h") || __has_include("src/platform/platform.h")
#error "the library's own headers are visible"
#endif

int main(int argc, char** argv) { return consume(argc, argv); }
