// How every page begins: it asks for nothing from elsewhere.
#pragma once
#include <string>

namespace greta::cli {

// Up to the title and the body's first heading. `scripts` says whether the page has any.
std::string page_start(const std::string& title, bool scripts = false);

}  // namespace greta::cli
