// Calls of a graph of greta_compute.h that share a launch: results stay those of single calls, and what
// others read is kept.
#include "support/compute_ops.h"

using namespace greta;
using namespace greta::test;

namespace {

constexpr uint64_t kRows = 3, kWidth = 64;

// y = W norm(x) + r, over values that are drawn anew for each graph.
struct Sums {
  ComputeRig& rig;
  Random random{17};
  greta_weights weights = {};
  Values matrix;
  std::vector<float> in, residual, gains;
  greta_tensor x, r, y, gain;

  explicit Sums(ComputeRig& on) : rig(on) {
    const auto made =
        selftest::random_matrix(QuantType::f32, kWidth, kWidth, 1, selftest::Scales::Plain, random);
    matrix = made.values;
    uint64_t bytes = 0;
    rig.ok(greta_weights_size(rig.compute, GRETA_TYPE_F32, kWidth, kWidth, &weights, &bytes, nullptr));
    weights.buffer = rig.buffer(bytes);
    rig.ok(greta_weights_pack(rig.compute, rig.stream, &weights, rig.put(made.bytes), 0));
    in = gaussians(kRows * kWidth, random), residual = gaussians(kRows * kWidth, random);
    gains = gaussians(kWidth, random);
    x = rig.tensor({kRows, kWidth}, in), r = rig.tensor({kRows, kWidth}, residual);
    y = rig.tensor({kRows, kWidth}), gain = rig.tensor({kWidth}, gains);
  }
  greta_tensor between() {
    greta_tensor made = y;
    made.offset = 0;
    rig.ok(greta_graph_temporary(rig.compute, rig.stream, kRows * kWidth * 4, &made.buffer));
    return made;
  }
  void norm(const greta_tensor& from, const greta_tensor& to) {
    auto call = sized<greta_rms_norm_call>();
    call.x = from, call.y = to, call.gain = gain, call.epsilon = 1e-5f;
    rig.ok(greta_rms_norm(rig.compute, rig.stream, &call, {}, 0));
  }
  void linear(const greta_tensor& from, const greta_tensor& to) {
    auto call = sized<greta_linear_call>();
    call.weights = weights, call.x = from, call.y = to;
    rig.ok(greta_linear(rig.compute, rig.stream, &call, {}, 0));
  }
  void add(const greta_tensor& a, const greta_tensor& b, const greta_tensor& to) {
    auto call = sized<greta_add_call>();
    call.a = a, call.b = b, call.y = to;
    rig.ok(greta_add(rig.compute, rig.stream, &call, {}, 0));
  }
  // Records what record() records, runs it once, and gives its launches.
  template <class Record>
  uint32_t run(Record&& record) {
    greta_graph graph = {};
    auto info = sized<greta_graph_info>();
    rig.ok(greta_graph_begin(rig.compute, rig.stream));
    record();
    rig.ok(greta_graph_end(rig.compute, rig.stream, &graph));
    rig.ok(greta_graph_describe(rig.compute, graph, &info));
    rig.ok(greta_graph_run(rig.compute, rig.stream, graph, nullptr, 0));
    rig.wait();
    rig.ok(greta_graph_close(rig.compute, graph));
    return info.launches;
  }
  void check(const greta_tensor& of, const Values& expected) {
    const double error = nmse(rig.get(of, kRows * kWidth), expected);
    INFO("error " << error);
    CHECK(error <= 1e-6);
  }
  Values product(const Values& of) const { return reference::matmul(matrix, of, kWidth); }
  Values normed(const Values& of) const { return reference::norm(of, to_values(gains), double(1e-5f)); }
  static Values sum(const Values& a, const Values& b) { return reference::add(a, b, 1); }
};

bool runs_on_cpu() { return test_device() == std::string("cpu"); }

}  // namespace

TEST_CASE("compute fusing: a product and the sum after it, a norm before it", "[compute]") {
  for (const auto& rig : op_rigs()) {
    Sums sums(*rig);
    const uint32_t with_sum = sums.run([&] {
      const greta_tensor t = sums.between();
      sums.linear(sums.x, t);
      sums.add(sums.r, t, sums.y);
    });
    if (runs_on_cpu()) CHECK(with_sum == 1);
    sums.check(sums.y, Sums::sum(sums.product(to_values(sums.in)), to_values(sums.residual)));
    // Two products read the norm, so it goes before both, or is made once.
    const uint32_t with_norm = sums.run([&] {
      const greta_tensor n = sums.between(), a = sums.between(), b = sums.between();
      sums.norm(sums.x, n);
      sums.linear(n, a);
      sums.linear(n, b);
      sums.add(a, b, sums.y);
    });
    CHECK(with_norm <= 4);
    const Values one = sums.product(sums.normed(to_values(sums.in)));
    sums.check(sums.y, Sums::sum(one, one));
  }
}

TEST_CASE("compute fusing: what the host or a later call reads is kept", "[compute]") {
  for (const auto& rig : op_rigs()) {
    Sums sums(*rig);
    const Values x = to_values(sums.in), r = to_values(sums.residual), product = sums.product(x);
    const greta_tensor kept = rig->tensor({kRows, kWidth});
    CHECK(sums.run([&] {
      sums.linear(sums.x, kept);
      sums.add(sums.r, kept, sums.y);
    }) == 2);
    sums.check(kept, product);
    sums.check(sums.y, Sums::sum(product, r));
    // A copy reads the temporary.
    CHECK(sums.run([&] {
      const greta_tensor t = sums.between();
      sums.linear(sums.x, t);
      sums.add(sums.r, t, sums.y);
      rig->ok(greta_stream_copy(rig->compute, rig->stream, kept.buffer, kept.offset, t.buffer, 0,
                                kRows * kWidth * 4));
    }) == 2);
    sums.check(kept, product);
    // So does a sum two calls later, and one that reads the norm itself.
    sums.run([&] {
      const greta_tensor n = sums.between(), t = sums.between(), u = sums.between();
      sums.norm(sums.x, n);
      sums.linear(n, t);
      sums.add(sums.r, t, u);
      sums.add(u, t, u);
      sums.add(u, n, sums.y);
    });
    const Values normed = sums.normed(x), of_norm = sums.product(normed);
    sums.check(sums.y, Sums::sum(Sums::sum(Sums::sum(r, of_norm), of_norm), normed));
  }
}

TEST_CASE("compute fusing: results that go where operands lie", "[compute]") {
  for (const auto& rig : op_rigs()) {
    Sums sums(*rig);
    const Values x = to_values(sums.in), r = to_values(sums.residual);
    // x = x + W x: a group must not write x while others read it.
    const greta_tensor h = rig->tensor({kRows, kWidth}, sums.in);
    CHECK(sums.run([&] {
      const greta_tensor t = sums.between();
      sums.linear(h, t);
      sums.add(h, t, h);
    }) == 2);
    const Values once = Sums::sum(x, sums.product(x));
    sums.check(h, once);
    // h = h + W norm(h), then a second product of the old norm, which is not made of the new h.
    const greta_tensor g = rig->tensor({kRows, kWidth}, sums.in);
    sums.run([&] {
      const greta_tensor n = sums.between(), t = sums.between();
      sums.norm(g, n);
      sums.linear(n, t);
      sums.add(g, t, g);
      sums.linear(n, sums.y);
    });
    const Values product = sums.product(sums.normed(x));
    sums.check(g, Sums::sum(x, product));
    sums.check(sums.y, product);
    // A temporary that is written anew holds first one norm, then another.
    sums.run([&] {
      const greta_tensor n = sums.between(), a = sums.between(), b = sums.between();
      sums.norm(sums.x, n);
      sums.linear(n, a);
      sums.norm(sums.r, n);
      sums.linear(n, b);
      sums.add(a, b, sums.y);
    });
    sums.check(sums.y, Sums::sum(product, sums.product(sums.normed(r))));
  }
}
