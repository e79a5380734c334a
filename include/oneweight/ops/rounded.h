// Keeps a product from being fused with the addition that follows it, where integer answers depend on its rounding.
#ifndef ONEWEIGHT_OPS_ROUNDED_H
#define ONEWEIGHT_OPS_ROUNDED_H

#include "oneweight/base/config.h"

namespace oneweight {
inline namespace v1 {

// x rounded to float; compilers may otherwise contract a * b + c. For tables, not for inner loops.
inline float rounded(float x) {
  volatile float value = x;
  return value;
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_ROUNDED_H
