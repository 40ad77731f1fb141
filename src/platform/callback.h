// Calls of what the caller gave us. A C++ program's may throw: what does goes on as CallbackThrew, so that
// the fence of the API can tell it from an exception of our own.
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
  } catch (const CallbackThrew&) {  // one within this one
    throw;
  } catch (const abi::__forced_unwind&) {  // its thread ends
    throw;
  } catch (const std::exception& e) {
    throw CallbackThrew(name, e.what());
  } catch (...) {
    throw CallbackThrew(name, nullptr);
  }
}

}  // namespace greta
