// Saves sessions to strings and restores them.
#pragma once
#include <cstddef>
#include <cstring>
#include <string>

#include "engine/session/session.h"
#include "engine/session/state.h"

namespace greta::test {

inline Status save(Session& session, std::string* out) {
  out->clear();
  return session.save(
      [](void* to, const void* from, size_t count) {
        static_cast<std::string*>(to)->append(static_cast<const char*>(from), count);
        return 0;
      },
      out);
}

inline Status restore(Session& session, const std::string& bytes) {
  Source source;
  GRETA_TRY(source.open_memory(bytes.data(), bytes.size()));
  return session.restore(source);
}

// Corrects the checksums of a changed state, as if it had been saved like this. A state that is too short for
// checksums stays as it is.
inline std::string with_sums(std::string bytes) {
  StateHeader header;
  if (bytes.size() < sizeof header + sizeof(uint64_t)) return bytes;
  memcpy(&header, bytes.data(), sizeof header);
  Checksum head, all;
  head.add(&header, offsetof(StateHeader, checksum));
  header.checksum = head.value();
  memcpy(bytes.data(), &header, sizeof header);
  all.add(bytes.data(), bytes.size() - sizeof(uint64_t));
  const uint64_t sum = all.value();
  memcpy(bytes.data() + bytes.size() - sizeof sum, &sum, sizeof sum);
  return bytes;
}

}  // namespace greta::test
