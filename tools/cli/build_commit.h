#pragma once

namespace greta::cli {

extern const char kBuildCommit[];  // that this program was built from, "" where that is not known

}  // namespace greta::cli
