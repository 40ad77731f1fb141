// Calls of the caller's callbacks. A callback of a C++ program may throw. Its exception becomes
// CallbackThrew, so that the exception fence of the API can tell it from an exception of the library.
#pragma once
#include <cxxabi.h>

#include <exception>

namespace greta {

struct CallbackThrew {
  CallbackThrew(const char* callback, const char* what);
  char text[400];  // a sentence
};

template <class Call>
auto call_back(const char* name, Call&& call) {
  try {
    return call();
  } catch (const CallbackThrew&) {  // thrown by a callback inside this one
    throw;
  } catch (const abi::__forced_unwind&) {  // the thread is being cancelled
    throw;
  } catch (const std::exception& e) {
    throw CallbackThrew(name, e.what());
  } catch (...) {
    throw CallbackThrew(name, nullptr);
  }
}

}  // namespace greta
