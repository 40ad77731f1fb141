// A C++ program that has names of its own in namespace greta, and another std::vector<float>: it must get its
// own, and the library must get the library's.
#include "../open_model.h"

namespace greta {
struct Status {
  int code;
};
enum class Code { Everything };
Status fail(Code, const char*, ...) { return {1234567}; }
uint32_t cpu_features() { return 0xffffffffu; }
}  // namespace greta

// What std::vector<float>::resize is made of, as a library built in another mode might define it.
extern "C" void other_default_append() __asm__("_ZNSt6vectorIfSaIfEE17_M_default_appendEm");
void other_default_append() {
  fprintf(stderr, "the library calls the program's std::vector<float>\n");
  throw 1;
}

int main(int argc, char** argv) {
  if (greta::fail(greta::Code::Everything, "").code != 1234567) return 1;
  if (greta::cpu_features() != 0xffffffffu) return 1;
  return consume(argc, argv);
}
