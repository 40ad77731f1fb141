// A C++ program that has names of its own in namespace greta, and templates that the library has too: each
// must get its own.
#include <memory>

#include "../open_model.h"

namespace greta {
struct Status {
  int code;
};
enum class Code { Everything };
Status fail(Code, const char*, ...) { return {1234567}; }
uint32_t cpu_features() { return 0xffffffffu; }
}  // namespace greta

int main(int argc, char** argv) {
  if (greta::fail(greta::Code::Everything, "").code != 1234567) return 1;
  if (greta::cpu_features() != 0xffffffffu) return 1;
  const std::shared_ptr<int> shared = std::make_shared<int>(1);  // its code is in a group that both have
  if (std::shared_ptr<int>(shared).use_count() != 2) return 1;
  return consume(argc, argv);
}
