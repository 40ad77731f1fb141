// Text by a format of printf, and the system's reasons, the same whatever locale the program has set.
//
// The library writes all numbers this way, or by std::to_chars, and reads them by std::from_chars:
// snprintf would write a comma where the program's locale has one.
#pragma once
#include <cstdarg>
#include <cstddef>

namespace greta {

// As snprintf: returns the bytes of the whole text, of which at most bytes - 1 are written, and a 0.
int format_text(char* out, size_t bytes, const char* format, ...) __attribute__((format(printf, 3, 4)));
int format_arguments(char* out, size_t bytes, const char* format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

// What an errno means, in English.
const char* errno_text(int error);

}  // namespace greta
