// The places that a service has for requests, and who holds them.
//
// A request holds a place from before it is read until it has ended or is cancelled, whichever comes first.
// Where all are held, or all of a salt, a request gives up its own whose reader has left it alone for long.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "platform/platform.h"

namespace greta {

class Request;

constexpr Code kBusy = Code(8);  // GRETA_ERROR_BUSY, which only services give

struct PlaceLimits {
  size_t all = 1024;                    // the most that wait or run
  size_t of_salt = 1024;                // and of those the most of one salt, but for the salt 0
  uint64_t unread_ns = 60'000'000'000;  // after which a request gives up its place for another one
};

class Places : public std::enable_shared_from_this<Places> {
 public:
  // One request's. It may be given up more than once and by any thread.
  class Place {
   public:
    ~Place() { give_up(); }
    void give_up();
    void belong_to(Request* request);  // which gives it up before it goes

   private:
    friend class Places;
    std::shared_ptr<Places> of_;
    uint64_t salt_ = 0;
    // Guarded by Places::mutex_.
    Request* request_ = nullptr;  // null while its options are read
    std::list<Place*>::iterator at_;
    bool held_ = false;
  };

  explicit Places(const PlaceLimits& limits) : limits_(limits) {}

  // kBusy where there is none.
  Status take(uint64_t salt, std::unique_ptr<Place>* out);

 private:
  void leave(Place& place);
  Place* longest_unread(const uint64_t* salt) const;

  const PlaceLimits limits_;
  std::mutex mutex_;  // for what follows
  std::list<Place*> held_;
  std::unordered_map<uint64_t, size_t> of_salt_;  // how many are held, of salts that hold any
};

}  // namespace greta
