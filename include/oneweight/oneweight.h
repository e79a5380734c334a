// oneweight: one model in memory, as many contexts as you like. This is the header to include.
//
//   auto model = oneweight::ModelView::open("model.tflite");            // mapped and verified once
//   auto plan = oneweight::make_plan<oneweight::opset::All>(*model);    // shared, immutable
//   auto context = oneweight::ExecutionContext::create(*plan);          // scratch only; one per thread
//   context->input<float>(0)  ->  fill;  context->run();  context->output<float>(0)  ->  read
//
// ONEWEIGHT_OPS may name another header than opset/all.h: one that includes just the operator files (without
// a guard around them) that a program needs, and defines its own OpSet.
#ifndef ONEWEIGHT_ONEWEIGHT_H
#define ONEWEIGHT_ONEWEIGHT_H

#include "oneweight/base/config.h"
#include "oneweight/simd/config.h"
#include "oneweight/context/execution_context.h"
#include "oneweight/context/quantize.h"
#include "oneweight/model/model_view.h"
#include "oneweight/plan/custom_operator.h"
#include "oneweight/plan/plan.h"

#ifndef ONEWEIGHT_OPS
#define ONEWEIGHT_OPS "oneweight/opset/all.h"
#endif

#if ONEWEIGHT_HAS_KERNELS && !ONEWEIGHT_STATIC_DISPATCH
#ifdef HIGHWAY_HWY_FOREACH_TARGET_H_
#error "a file can hold one loop over Highway's targets: include oneweight first, or set ONEWEIGHT_EXTERN_KERNELS=1"
#endif
#pragma push_macro("HWY_TARGET_INCLUDE")
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE ONEWEIGHT_OPS
#include "hwy/foreach_target.h"
#pragma pop_macro("HWY_TARGET_INCLUDE")
#endif
#include ONEWEIGHT_OPS

#include "oneweight/opset/make_plan.h"

#endif  // ONEWEIGHT_ONEWEIGHT_H
