// The functions of greta_compute.h for timelines.
#include "api/compute/objects.h"

using namespace greta;

namespace greta {

TimelineObject::~TimelineObject() {
  if (outside()) sharing->destroy_shared(shared);
  waiter_.reset();
  for (Signal& signal : ring_) device.destroy(signal.event);
}

void TimelineObject::all_done(uint64_t stream, bool closed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stream != signaller_) return;
  done_ = count_;
  if (closed) signaller_ = 0;
}

// Others may have signalled it, too.
Status TimelineObject::signal_outside(StreamObject& stream, uint64_t value) {
  auto* const to = dynamic_cast<SharingStream*>(stream.stream.get());
  uint64_t now = 0;
  GRETA_TRY(sharing->value_of(shared, &now));
  now = std::max(now, last_outside_);
  if (value <= now)
    return fail(Code::Argument, "signal: the value %llu, the timeline has or will have %llu",
                (unsigned long long)value, (unsigned long long)now);
  GRETA_TRY(recorded(stream, [&]() -> Status {
    GRETA_TRY(to->signal_shared(shared, value));
    return stream.submit();
  }));
  last_outside_ = value;
  return {};
}

Status TimelineObject::signal(StreamObject& stream, uint64_t value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (outside()) return signal_outside(stream, value);
  const uint64_t last = count_ ? at(count_ - 1).value : 0;
  if (value <= last)
    return fail(Code::Argument, "signal: the value %llu, the timeline has a signal of %llu",
                (unsigned long long)value, (unsigned long long)last);
  if (signaller_ && signaller_ != stream.number)
    return fail(Code::Argument, "signal: stream %llx signals this timeline, not stream %llx",
                (unsigned long long)signaller_, (unsigned long long)stream.number);
  if (count_ - done_ >= GRETA_TIMELINE_SIGNALS)
    return fail(Code::Full,
                "signal: %llu signals are behind the last one that was waited for, at most %d may be",
                (unsigned long long)(count_ - done_), GRETA_TIMELINE_SIGNALS);
  Signal& next = at(count_);
  if (!next.event.handle) GRETA_TRY(device.create_event(&next.event, timed));
  GRETA_TRY(recorded(stream, [&]() -> Status {
    GRETA_TRY(stream.stream->signal(next.event));
    return stream.submit();
  }));
  next.value = value;
  signaller_ = stream.number;
  ++count_;
  return {};
}

// The first signal of at least this value, by its index.
Status TimelineObject::find(uint64_t value, uint64_t* index) {
  const uint64_t last = count_ ? at(count_ - 1).value : 0;
  if (value > last)
    return fail(Code::Argument, "wait: for the value %llu, the last signal of the timeline is %llu",
                (unsigned long long)value, (unsigned long long)last);
  uint64_t first = kept_from(), end = count_;
  while (first < end) {
    const uint64_t middle = first + (end - first) / 2;
    if (at(middle).value < value)
      first = middle + 1;
    else
      end = middle;
  }
  *index = first;
  return {};
}

Status TimelineObject::wait_for(StreamObject& stream, uint64_t value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (outside())
    return recorded(stream, [&]() -> Status {
      GRETA_TRY(dynamic_cast<SharingStream&>(*stream.stream).wait_for_shared(shared, value));
      stream.hazards.all();
      return {};
    });
  uint64_t index;
  GRETA_TRY(find(value, &index));
  if (index < done_ || index == count_) return {};
  return recorded(stream, [&]() -> Status {
    GRETA_TRY(stream.stream->wait_for(at(index).event));
    stream.hazards.all();
    return {};
  });
}

Status TimelineObject::wait(uint64_t value, const Spans& spans) {
  Span span(spans, SpanKind::Wait, "wait");
  span.event.number = number;
  if (outside()) return sharing->wait_shared(shared, value);
  const std::lock_guard<std::mutex> one(waiting_);
  uint64_t index;
  if (!waiter_) {
    Stream* opened = nullptr;
    GRETA_TRY(device.create_stream(&opened));
    waiter_.reset(opened);
  }
  Recording recording(*waiter_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    GRETA_TRY(find(value, &index));
    if (index < done_ || index == count_) return {};
    GRETA_TRY(waiter_->wait_for(at(index).event));
  }
  GRETA_TRY(waiter_->wait());
  recording.keep();
  const std::lock_guard<std::mutex> lock(mutex_);
  done_ = std::max(done_, index + 1);
  return {};
}

Status TimelineObject::elapsed(uint64_t from, uint64_t to, uint64_t* out_ns) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!timed || outside()) return fail(Code::Argument, "elapsed: the timeline was opened without `timed`");
  uint64_t index[2];
  const uint64_t values[2] = {from, to};
  for (int i = 0; i < 2; ++i) {
    GRETA_TRY(find(values[i], &index[i]));
    if (index[i] == count_ || at(index[i]).value != values[i])
      return fail(Code::Argument, "elapsed: the value %llu was not signalled, or long ago",
                  (unsigned long long)values[i]);
    if (index[i] >= done_)
      return fail(Code::Argument, "elapsed: the value %llu was not waited for",
                  (unsigned long long)values[i]);
  }
  if (from > to)
    return fail(Code::Argument, "elapsed: from %llu to %llu", (unsigned long long)from,
                (unsigned long long)to);
  return device.elapsed_ns(at(index[0]).event, at(index[1]).event, out_ns);
}

}  // namespace greta

greta_status greta_timeline_open(greta_compute* compute, const greta_timeline_options* given,
                                 greta_timeline* out_timeline) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(out_timeline, "out_timeline"));
    greta_timeline_options o;
    bool timed = false, shared = false;
    GRETA_TRY(read_options(given, &o));
    GRETA_TRY(check_reserved(o.reserved));
    GRETA_TRY(read_flag(o.timed, "timed", &timed));
    GRETA_TRY(read_flag(o.shared, "shared", &shared));
    auto timeline = std::make_shared<TimelineObject>(compute->device(), timed);
    if (shared && timed) return fail(Code::Argument, "a timeline cannot be both timed and shared");
    if (shared) GRETA_TRY(sharing_of(compute->device(), &timeline->sharing));
    if (shared) GRETA_TRY(timeline->sharing->create_shared(&timeline->shared));
    timeline->exports = shared;
    return compute->add(timeline, out_timeline);
  });
}

greta_status greta_timeline_close(greta_compute* compute, greta_timeline handle) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(compute, "compute"));
    std::shared_ptr<Object> object;
    return compute->remove(handle.owner, handle.number, Object::Kind::Timeline, &object);
  });
}

greta_status greta_stream_signal(greta_compute* compute, greta_stream handle, greta_timeline timeline,
                                 uint64_t value) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      std::shared_ptr<TimelineObject> signalled;
      GRETA_TRY(stream.not_recording("signal"));
      GRETA_TRY(compute->find(timeline, &signalled));
      stream.use(signalled);
      const auto same = [&](const auto& each) { return each.lock() == signalled; };
      if (std::none_of(stream.signals.begin(), stream.signals.end(), same)) {
        std::erase_if(stream.signals, [](const auto& each) { return each.expired(); });
        stream.signals.push_back(signalled);
      }
      return signalled->signal(stream, value);
    });
  });
}

greta_status greta_stream_wait_for(greta_compute* compute, greta_stream handle, greta_timeline timeline,
                                   uint64_t value) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      std::shared_ptr<TimelineObject> waited;
      GRETA_TRY(stream.not_recording("wait_for"));
      GRETA_TRY(compute->find(timeline, &waited));
      stream.use(waited);
      return waited->wait_for(stream, value);
    });
  });
}

greta_status greta_timeline_wait(greta_compute* compute, greta_timeline handle, uint64_t value) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    std::shared_ptr<TimelineObject> timeline;
    GRETA_TRY(compute->find(handle, &timeline));
    return timeline->wait(value, compute->runtime.spans);
  });
}

greta_status greta_timeline_elapsed(greta_compute* compute, greta_timeline handle, uint64_t from, uint64_t to,
                                    uint64_t* out_ns) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(out_ns, "out_ns"));
    std::shared_ptr<TimelineObject> timeline;
    GRETA_TRY(compute->find(handle, &timeline));
    return timeline->elapsed(from, to, out_ns);
  });
}
