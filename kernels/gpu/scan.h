// What the conv1d and scan kernels of GPUs share. Both languages read it, HIP between GLSL_BEGIN and
// GLSL_END. Before it stands runs.h of the backend, with these words:
//   AT(address, i)      a float of an operand
//   MOVED(address, n)   the address n floats further; n may be negative
//   IS(address)         whether the operand is there
//   STATE_AT(state, i)  a float of a run's state
//   UNROLL, ROLLED      before a loop
#ifndef GRETA_GPU_SCAN_H
#define GRETA_GPU_SCAN_H

float logistic(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

// log(1 + u) for u from 0 to 1, by 2 atanh(u / (2 + u)).
float log_1_plus(float u) {
  const float s = u / (2.0f + u), z = s * s;
  float p = 0.0666666667f;
  p = p * z + 0.0769230769f;
  p = p * z + 0.0909090909f;
  p = p * z + 0.111111111f;
  p = p * z + 0.142857143f;
  p = p * z + 0.2f;
  p = p * z + 0.333333333f;
  return 2.0f * (p * z * s + s);
}

// log(1 + exp(x)). A rate has a limit for large numbers: infinity becomes NaN.
float softplus(float x) { return if_finite(x, (x > 0.0f ? x : 0.0f) + log_1_plus(exp_f32(-abs(x)))); }

// Where the keys of a head begin, in values of the operand.
uint key_at(ScanBlock p, uint t, uint h) {
  const uint group = (p.form & kScanTiled) != 0 ? h % p.groups : h / (p.heads / p.groups);
  return t * p.key_stride + group * p.key_width;
}

float rate_of(ScanBlock p, uint t, uint h) {
  const float dt = AT(p.dt, t * p.dt_stride + h);
  return softplus(IS(p.dt_bias) ? dt + AT(p.dt_bias, h) : dt);
}

// Infinity becomes NaN.
float strength_of(ScanBlock p, uint t, uint h) {
  const float x = AT(p.with_value, t * p.dt_stride + h);
  return if_finite(x, logistic(x));
}

float skip_of(ScanBlock p, uint h) {
  return scan_form(p.form) != kScanDelta && IS(p.with_value) ? AT(p.with_value, h) : 0.0f;
}

// What a query is multiplied by beside its length.
float query_factor(ScanBlock p) {
  return scan_form(p.form) == kScanDelta ? 1.0f / sqrt(float(p.key_width)) : 1.0f;
}

float length_factor(ScanBlock p, float squares) {
  return p.epsilon < 0.0f ? 1.0f : 1.0f / sqrt(squares + p.epsilon);
}
#endif
