// NON_MAX_SUPPRESSION_V4 and _V5: the best boxes that do not overlap a better one too much. Inputs, float: boxes [n, 4] (two
// opposite corners, y before x), scores [n]; scalars: the most boxes wanted (int32), the overlap from which a box is dropped,
// the score a box must exceed and, in V5, sigma: above 0, scores decay by exp(-overlap^2 / (2 sigma)) for each chosen box.
// Outputs: numbers of the chosen boxes (int32), V5: their scores, and how many there are (scalar int32). Places behind them
// hold zeros. Equal scores: the earlier box first; a score that is not a number is never chosen. A most that is computed must
// be the length the file gives the output. Scratch: 12 bytes a box.
#ifndef ONEWEIGHT_OPS_NON_MAX_SUPPRESSION_H
#define ONEWEIGHT_OPS_NON_MAX_SUPPRESSION_H

#include <algorithm>
#include <cmath>

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct NonMaxSuppressionParams {
  int64_t boxes = 0, most = 0;
};

template <bool kSoft>
struct NonMaxSuppressionBy {
  static bool accepts(const NodeTypes& t) {
    for (int i : {0, 1, 3, 4})
      if (!t.in(i, TensorType::float32)) return false;
    return t.input_count == (kSoft ? 6 : 5) && t.in(2, TensorType::int32) && (!kSoft || t.in(5, TensorType::float32)) &&
           t.out(0, TensorType::int32) && t.out(kSoft ? 2 : 1, TensorType::int32) && (!kSoft || t.out(1, TensorType::float32));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kSoft ? BuiltinOperator::non_max_suppression_v5 : BuiltinOperator::non_max_suppression_v4,
                                .types = "float",
                                .accepts = &accepts,
                                .prepare = &prepare};
};
using NonMaxSuppressionV4 = NonMaxSuppressionBy<false>;
using NonMaxSuppressionV5 = NonMaxSuppressionBy<true>;

#if ONEWEIGHT_HAS_KERNELS
namespace suppression {
struct Candidate {
  float score;
  int32_t box;
  int32_t seen;  // chosen boxes that have been compared already
};
inline bool worse(const Candidate& a, const Candidate& b) { return a.score != b.score ? a.score < b.score : a.box > b.box; }

inline float overlap(const float* boxes, int64_t a, int64_t b) {
  float low[2][2], high[2][2];  // of both boxes, along y and x
  const int64_t numbers[2] = {a, b};
  for (int i = 0; i < 2; ++i) {
    float corners[4];
    std::memcpy(corners, boxes + numbers[i] * 4, sizeof(corners));
    for (int axis = 0; axis < 2; ++axis) {
      low[i][axis] = std::min(corners[axis], corners[axis + 2]);
      high[i][axis] = std::max(corners[axis], corners[axis + 2]);
    }
  }
  const float area_a = (high[0][0] - low[0][0]) * (high[0][1] - low[0][1]), area_b = (high[1][0] - low[1][0]) * (high[1][1] - low[1][1]);
  if (area_a <= 0 || area_b <= 0) return 0;
  const float height = std::max(std::min(high[0][0], high[1][0]) - std::max(low[0][0], low[1][0]), 0.0f);
  const float width = std::max(std::min(high[0][1], high[1][1]) - std::max(low[0][1], low[1][1]), 0.0f);
  const float common = height * width;
  return common / (area_a + area_b - common);
}

template <bool kSoft>
void kernel(const KernelArgs& args) {
  const auto& p = args.params<NonMaxSuppressionParams>();
  const auto scalar = [&](int i) { return Preparation::load<float>(args.in<std::byte>(i), 0); };
  const int32_t most = Preparation::load<int32_t>(args.in<std::byte>(2), 0);
  if (most != p.most)
    return args.run->fail(ErrorCode::invalid_data, "is asked for %d boxes, its output has room for %lld", most,
                          static_cast<long long>(p.most));
  const float limit = scalar(3), threshold = scalar(4);
  const float sigma = kSoft ? scalar(5) : 0;
  if (limit != limit) return args.run->fail(ErrorCode::invalid_data, "the overlap from which boxes are dropped is not a number");
  if (!(sigma >= 0)) return args.run->fail(ErrorCode::invalid_data, "sigma %g is not a number from 0 on", static_cast<double>(sigma));
  const float decay = sigma > 0 ? -0.5f / sigma : 0;
  auto* chosen = args.out<int32_t>(0);
  auto* scores = kSoft ? args.out<float>(1) : nullptr;
  auto* queue = reinterpret_cast<Candidate*>(args.scratch);
  int64_t waiting = 0, count = 0;
  for (int64_t i = 0; i < p.boxes; ++i)
    if (const float score = Preparation::load<float>(args.in<std::byte>(1), i); score > threshold)
      queue[waiting++] = {score, static_cast<int32_t>(i), 0};
  std::make_heap(queue, queue + waiting, worse);
  while (waiting > 0 && count < p.most) {
    std::pop_heap(queue, queue + waiting, worse);
    Candidate& next = queue[waiting - 1];
    const float before = next.score;
    bool dropped = false;
    for (int64_t k = count - 1; k >= next.seen && !dropped; --k) {
      const float common = overlap(args.in<float>(0), next.box, chosen[k]);
      dropped = common >= limit;
      if (dropped || sigma <= 0) continue;
      next.score *= std::exp(decay * common * common);
      dropped = !(next.score > threshold);  // NaN, too
    }
    next.seen = static_cast<int32_t>(count);
    if (!dropped && next.score != before) {
      std::push_heap(queue, queue + waiting, worse);
      continue;
    }
    --waiting;
    if (dropped) continue;
    chosen[count] = next.box;
    if (kSoft) scores[count] = next.score;
    ++count;
  }
  for (int64_t i = count; i < p.most; ++i) {
    chosen[i] = 0;
    if (kSoft) scores[i] = 0;
  }
  *args.out<int32_t>(kSoft ? 2 : 1) = static_cast<int32_t>(count);
}
}  // namespace suppression

template <bool kSoft>
Status NonMaxSuppressionBy<kSoft>::prepare(Preparation& p) {
  constexpr int kScalars = kSoft ? 6 : 5;
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(kScalars, kScalars, kSoft ? 3 : 2));
  const Operand &boxes = p.input(0), &scores = p.input(1);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(boxes, 2, 2));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(scores, 1, 1));
  if (boxes.shape[1] != 4 || boxes.shape[0] != scores.shape[0] || boxes.shape[0] > std::numeric_limits<int32_t>::max())
    return p.invalid("%s and %s are not boxes of four numbers with their scores", p.describe(boxes).c_str(), p.describe(scores).c_str());
  for (int i = 2; i < kScalars; ++i)
    if (p.input(i).shape.elements() != 1) return p.invalid("input %d %s is not one element", i, p.describe(p.input(i)).c_str());
  NonMaxSuppressionParams* params = p.make_params<NonMaxSuppressionParams>();
  if (!params) return p.no_memory();
  params->boxes = boxes.shape[0];
  if (p.input(2).is_constant) {
    std::vector<int64_t> most;
    ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(2, &most));
    params->most = most[0];
    if (params->most < 0) return p.invalid("is asked for %lld boxes", static_cast<long long>(params->most));
  } else {
    if (p.output(0).shape.rank() != 1)
      return p.error(ErrorCode::unsupported, "needs the value of %s before the run, but it is computed", p.describe(p.input(2)).c_str());
    params->most = p.output(0).shape[0];
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, Shape{params->most}));
  if (kSoft) ONEWEIGHT_RETURN_IF_ERROR(p.set_output(1, Shape{params->most}));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(kSoft ? 2 : 1, Shape()));
  p.set_scratch(params->boxes * static_cast<int64_t>(sizeof(suppression::Candidate)));
  p.set_kernel(&suppression::kernel<kSoft>);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_NON_MAX_SUPPRESSION_H
