#pragma once

namespace greta::cli {

extern const char kBuildCommit[];    // the commit that this program was built from, "" where it is not known
extern const char kBuildCompiler[];  // the compiler with its version and flags

}  // namespace greta::cli
