// What one thread of this machine can do at most: multiply-adds of floats and of bytes, and reading memory. The best of some rounds.
//   peak    prints a line; built for the processor it is compiled on
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {
namespace hn = hwy::HWY_NAMESPACE;
using Clock = std::chrono::steady_clock;

constexpr int kSums = 16;  // enough to hide the latency of two units, few enough for the registers

// The largest number of `work` a second, in 10^9, of five calls of run().
template <class Run>
double best_rate(double work, Run run) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const Clock::time_point start = Clock::now();
    run();
    best = std::max(best, work / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best / 1e9;
}

// Accumulates kSums vectors `rounds` times; the sum of all keeps the compiler from leaving it out.
template <class D, class Step>
void accumulate(D d, int rounds, Step step, volatile hn::TFromD<D>* sink) {
  using V = hn::Vec<D>;
  // All different: equal ones would be computed once.
  const auto start = [d](int i) { return hn::Set(d, static_cast<hn::TFromD<D>>(i)); };
  V s0 = start(0), s1 = start(1), s2 = start(2), s3 = start(3), s4 = start(4), s5 = start(5), s6 = start(6), s7 = start(7);
  V t0 = start(8), t1 = start(9), t2 = start(10), t3 = start(11), t4 = start(12), t5 = start(13), t6 = start(14), t7 = start(15);
  for (int i = 0; i < rounds; ++i) {
    s0 = step(s0), s1 = step(s1), s2 = step(s2), s3 = step(s3), s4 = step(s4), s5 = step(s5), s6 = step(s6), s7 = step(s7);
    t0 = step(t0), t1 = step(t1), t2 = step(t2), t3 = step(t3), t4 = step(t4), t5 = step(t5), t6 = step(t6), t7 = step(t7);
  }
  const auto all = [](V a, V b, V c, V e) { return hn::Add(hn::Add(a, b), hn::Add(c, e)); };
  *sink = hn::GetLane(hn::Add(all(s0, s1, s2, s3), all(hn::Add(s4, t0), hn::Add(s5, t1), hn::Add(s6, t2), all(hn::Add(s7, t3), t4, hn::Add(t5, t6), t7))));
}

double float_rate() {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, 0.5f), b = hn::Set(d, 1.5f);
  constexpr int kRounds = 1 << 22;
  volatile float sink = 0;
  return best_rate(1.0 * kRounds * kSums * static_cast<double>(hn::Lanes(d)),
                   [&] { accumulate(d, kRounds, [&](auto s) { return hn::MulAdd(a, s, b); }, &sink); });
}

double byte_rate() {
  const hn::ScalableTag<int32_t> d;
  const hn::Repartition<uint8_t, decltype(d)> du;
  const hn::Repartition<int8_t, decltype(d)> ds;
  const auto a = hn::Set(du, uint8_t{3});
  const auto b = hn::Set(ds, int8_t{-5});
  constexpr int kRounds = 1 << 22;
  volatile int32_t sink = 0;
  return best_rate(4.0 * kRounds * kSums * static_cast<double>(hn::Lanes(d)),
                   [&] { accumulate(d, kRounds, [&](auto s) { return hn::SumOfMulQuadAccumulate(d, a, b, s); }, &sink); });
}

double read_rate() {
  const hn::ScalableTag<uint32_t> d;
  const std::vector<uint32_t> memory(size_t{64} << 20, 1);
  const size_t n = hn::Lanes(d);
  volatile uint32_t sink = 0;
  return best_rate(4.0 * static_cast<double>(memory.size()), [&] {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (size_t i = 0; i + 4 * n <= memory.size(); i += 4 * n) {
      const uint32_t* from = memory.data() + i;
      for (size_t k = 0; k < 4 * n; k += 16) hwy::Prefetch(from + 4096 / sizeof(uint32_t) + k);
      s0 = hn::Add(s0, hn::LoadU(d, from)), s1 = hn::Add(s1, hn::LoadU(d, from + n));
      s2 = hn::Add(s2, hn::LoadU(d, from + 2 * n)), s3 = hn::Add(s3, hn::LoadU(d, from + 3 * n));
    }
    sink = hn::GetLane(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
  });
}

}  // namespace

int main() {
  std::printf("peak of one thread (%s): %.1f G multiply-adds of floats a second, %.1f G of bytes; reads %.1f GB a second\n",
              hwy::TargetName(HWY_STATIC_TARGET), float_rate(), byte_rate(), read_rate());
}
