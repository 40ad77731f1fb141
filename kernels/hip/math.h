// The arithmetic of kernels/gpu/math.h in HIP: exp_f32, tanh_f32, f32_to_f16 and so on.
#pragma once
#include "kernels/hip/glsl.h"

GLSL_BEGIN
#include "kernels/gpu/math.h"
GLSL_END
