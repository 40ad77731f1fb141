// The functions of greta_compute.h for streams.
#include "api/compute/graphs.h"

using namespace greta;

namespace greta {

StreamObject::~StreamObject() {
  if (stream) drain(*stream);
  for (const auto& each : signals)
    if (const auto timeline = each.lock()) timeline->all_done(number, true);
}

Status StreamObject::not_recording(const char* what) const {
  return graph ? fail(Code::Argument, "%s: a graph is being recorded on the stream", what) : Status{};
}

Status StreamObject::can_use(const BufferObject& buffer) const {
  if (!buffer.graph || (graph && graph->serial == buffer.graph)) return {};
  return fail(Code::Argument, "buffer %llx is part of a graph that is not being recorded on this stream",
              (unsigned long long)buffer.number);
}

Status StreamObject::order(std::span<const Access> accesses) {
  return hazards.note(accesses) ? stream->barrier() : Status{};
}

Status StreamObject::dispatch(const Launch& launch) {
  const std::span<const Access> accesses{launch.accesses, launch.access_count};
  GRETA_TRY(order(accesses));
  return stream->dispatch(*launch.kernel, launch.groups, launch.arguments(), accesses);
}

Status StreamObject::need_counters(greta_compute& compute, Slice* out) {
  if (!counters) {
    constexpr uint64_t kBytes = kCounterCount * sizeof(uint32_t);
    auto made = std::make_unique<BufferObject>(compute.memories, GRETA_MEMORY_DEVICE);
    GRETA_TRY(compute.memories.take(GRETA_MEMORY_DEVICE, kBytes, &made->slice));
    const Access zeros = {made->slice, Access::kWrite};
    GRETA_TRY(recorded(*this, [&]() -> Status {
      GRETA_TRY(order({&zeros, 1}));
      GRETA_TRY(stream->fill(made->slice, 0));
      return submit();
    }));
    counters = std::move(made);
  }
  *out = counters->slice;
  return {};
}

// What comes next sees what other streams and the host do meanwhile.
Status StreamObject::submit() {
  Span span(spans, SpanKind::Submit, "submit");
  span.event.number = number;
  span.event.launches = pending.launches;
  span.event.bytes = pending.bytes, span.event.flops = pending.flops;
  pending = {};
  hazards.all();
  return stream->submit();
}

Status StreamObject::wait() {
  if (spans.on()) GRETA_TRY(submit());
  {
    Span span(spans, SpanKind::Wait, "wait");
    span.event.number = number;
    GRETA_TRY(stream->wait());
  }
  pending = {};
  hazards.all();
  used.clear();
  std::erase_if(signals, [](const auto& each) { return each.expired(); });
  for (const auto& each : signals)
    if (const auto timeline = each.lock()) timeline->all_done(number, false);
  return {};
}

}  // namespace greta

greta_status greta_stream_open(greta_compute* compute, greta_stream* out_stream) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(out_stream, "out_stream"));
    auto object = std::make_shared<StreamObject>(compute->runtime.spans);
    Stream* opened = nullptr;
    GRETA_TRY(compute->device().create_stream(&opened));
    object->stream.reset(opened);
    return compute->add(object, out_stream);
  });
}

greta_status greta_stream_close(greta_compute* compute, greta_stream handle) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(compute, "compute"));
    if (!handle.number) return {};
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      std::shared_ptr<Object> object;
      drop_graph(*compute, stream);
      GRETA_TRY(compute->remove(handle.owner, handle.number, Object::Kind::Stream, &object));
      drain(*stream.stream);
      return {};
    });
  });
}

greta_status greta_stream_copy(greta_compute* compute, greta_stream handle, greta_buffer to,
                               uint64_t to_offset, greta_buffer from, uint64_t from_offset, uint64_t bytes) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      std::shared_ptr<BufferObject> target, source;
      Slice write, read;
      GRETA_TRY(compute->find(to, &target));
      GRETA_TRY(compute->find(from, &source));
      GRETA_TRY(slice_of(*target, "copy to", to_offset, bytes, &write));
      GRETA_TRY(slice_of(*source, "copy from", from_offset, bytes, &read));
      if (!bytes) return {};
      if (overlaps(write, read))
        return fail(Code::Argument, "copy: the ranges at %llu and %llu of %llu bytes of one buffer overlap",
                    (unsigned long long)from_offset, (unsigned long long)to_offset,
                    (unsigned long long)bytes);
      GRETA_TRY(stream.can_use(*target));
      GRETA_TRY(stream.can_use(*source));
      if (stream.graph) return stream.graph->copy(write, read, target, source);
      stream.use(target);
      stream.use(source);
      return recorded(stream, [&]() -> Status {
        const Access accesses[] = {{read, Access::kRead}, {write, Access::kWrite}};
        GRETA_TRY(stream.order(accesses));
        return stream.stream->copy(write, read);
      });
    });
  });
}

greta_status greta_stream_fill(greta_compute* compute, greta_stream handle, greta_buffer buffer,
                               uint64_t offset, uint64_t bytes, uint32_t word) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      std::shared_ptr<BufferObject> target;
      Slice write;
      GRETA_TRY(stream.not_recording("fill"));
      GRETA_TRY(compute->find(buffer, &target));
      GRETA_TRY(stream.can_use(*target));
      GRETA_TRY(slice_of(*target, "fill", offset, bytes, &write));
      if (offset % 4 || bytes % 4)
        return fail(Code::Argument, "fill: offset %llu and size %llu must be multiples of 4",
                    (unsigned long long)offset, (unsigned long long)bytes);
      if (!bytes) return {};
      stream.use(target);
      return recorded(stream, [&]() -> Status {
        const Access access = {write, Access::kWrite};
        GRETA_TRY(stream.order({&access, 1}));
        return stream.stream->fill(write, word);
      });
    });
  });
}

greta_status greta_stream_submit(greta_compute* compute, greta_stream handle) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    return on_stream(*compute, handle, [](StreamObject& stream) -> Status {
      GRETA_TRY(stream.not_recording("submit"));
      return stream.submit();
    });
  });
}

greta_status greta_stream_wait(greta_compute* compute, greta_stream handle) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    return on_stream(*compute, handle, [](StreamObject& stream) -> Status {
      GRETA_TRY(stream.not_recording("wait"));
      return stream.wait();
    });
  });
}
