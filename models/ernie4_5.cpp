// ERNIE 4.5 without experts: llama whose published weights already are in the order of rotary pairs.
// Baidu, "ERNIE 4.5 Technical Report", 2025.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_ernie4_5;
const Arch arch_ernie4_5 = {
    .name = "ernie4_5",
    .rope = Rope::Pairs,
};
}  // namespace greta
