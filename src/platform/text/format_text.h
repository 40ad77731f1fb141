// Formatted text and the system's error messages, which do not depend on the locale that the program has set.
//
// The library writes all numbers this way or by std::to_chars, and reads them by std::from_chars: snprintf
// would write a decimal comma where the program's locale has one.
#pragma once
#include <cstdarg>
#include <cstddef>

namespace greta {

// As snprintf, writes at most bytes - 1 characters and a 0, and returns the length of the whole text.
int format_text(char* out, size_t bytes, const char* format, ...) __attribute__((format(printf, 3, 4)));
int format_arguments(char* out, size_t bytes, const char* format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

// Returns what an errno means, in English.
const char* errno_text(int error);

}  // namespace greta
