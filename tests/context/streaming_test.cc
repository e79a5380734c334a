// Streams: models that remember, in variables, in state tensors, or in states that the caller carries from outputs to inputs.
#include <malloc.h>

#include <cmath>
#include <cstdlib>

#include "examples/support/wav.h"
#include "examples/wake_word/features.h"
#include "tests/support/counters.h"
#include "tests/support/test_data.h"

namespace {

using Answer = std::vector<std::byte>;

// The spoken words of the test data as a wake word model hears them: what it takes in 30 ms at a time.
const std::vector<std::array<int8_t, 120>>& spoken() {
  static const auto blocks = [] {
    const Wav wav = read_wav(std::string(ONEWEIGHT_TEST_DATA) + "/sounds/okay_nabu.wav");
    std::vector<std::array<int8_t, 120>> result(wav.samples.size() / (3 * Features::kStep));
    Features features;
    for (size_t i = 0; i < 3 * result.size(); ++i) {
      const auto heard = features.next(std::span(wav.samples).subspan(i * Features::kStep).first<Features::kStep>());
      for (size_t c = 0; c < heard.size(); ++c)
        result[i / 3][i % 3 * heard.size() + c] = static_cast<int8_t>(std::clamp(std::round(heard[c] * 256 / 666) - 128, -128.0f, 127.0f));
    }
    return result;
  }();
  REQUIRE(blocks.size() > 90);
  return blocks;
}

// How states go from outputs to inputs: copied, or in two buffers that change places.
enum class Carry { copied, bound };

// One stream through one context. What goes in depends on the stream's number and the step only.
class Stream {
 public:
  Stream(const std::shared_ptr<const oneweight::Plan>& plan, unsigned number, Carry carry = Carry::copied)
      : context_(context_of(plan)), number_(number), carry_(carry) {
    for (int i = 1; i < inputs(); ++i) {
      const std::vector<std::byte> zeros(context_.input_bytes(i).size());
      before_.push_back(zeros), after_.push_back(zeros);
    }
    reset();
  }

  // False when the run fails. Allocates nothing.
  bool step(size_t at) {
    const auto input = context_.input_bytes(0);
    if (context_.input_tensor(0).type == oneweight::TensorType::float32) {
      unsigned state = static_cast<unsigned>(at) * 2654435761u + number_ * 40503u + 1;
      for (float& f : *context_.input<float>(0)) f = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / (1 << 24);
    } else {
      const auto& block = spoken()[(at + 7 * number_) % spoken().size()];
      for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::byte>(block[i % block.size()]);
    }
    for (int i = 1; carry_ == Carry::bound && i < inputs(); ++i) {
      std::swap(before_[i - 1], after_[i - 1]);
      if (!context_.bind_input(i, before_[i - 1]).ok() || !context_.bind_output(i, after_[i - 1]).ok()) return false;
    }
    if (!context_.run().ok()) return false;
    for (int i = 1; carry_ == Carry::copied && i < inputs(); ++i)
      std::ranges::copy(context_.output_bytes(i), context_.input_bytes(i).begin());
    return true;
  }
  std::span<const std::byte> answer() const { return context_.output_bytes(0); }

  // The answers of the next steps.
  std::vector<Answer> listen(size_t first, size_t count) {
    std::vector<Answer> answers;
    for (size_t at = first; at < first + count; ++at) {
      REQUIRE(step(at));
      answers.emplace_back(answer().begin(), answer().end());
    }
    return answers;
  }

  void reset() {
    context_.reset();  // inputs are the caller's, and with them the states it carries
    for (int i = 1; i < inputs(); ++i) {
      std::ranges::fill(context_.input_bytes(i), std::byte{0});
      std::ranges::fill(after_[i - 1], std::byte{0});
    }
  }

 private:
  // The inputs after the first are states, and outputs of the same numbers what becomes of them.
  int inputs() const { return static_cast<int>(context_.plan()->inputs().size()); }

  oneweight::ExecutionContext context_;
  unsigned number_;
  Carry carry_;
  std::vector<std::vector<std::byte>> before_, after_;
};

struct Case {
  std::string path;
  size_t step_ms;  // of sound in one run
  bool forgets;    // what was long ago, to the last bit
};

// A wake word with variables; where ONEWEIGHT_MORE_DATA is set also voice activity, states that the caller carries, and LSTMs.
std::vector<Case> streaming_models() {
  std::vector<Case> models = {{std::string(ONEWEIGHT_TEST_DATA) + "/models/mww_v2_okay_nabu/model.tflite", 30, true}};
  if (const char* more = std::getenv("ONEWEIGHT_MORE_DATA"))
    for (const auto& [name, step_ms] : std::initializer_list<std::pair<const char*, size_t>>{
             {"mww_v2_vad", 30}, {"dtln_1_f32", 8}, {"dtln_1_hybrid", 8}, {"lstm_fused_f32", 320}, {"lstm_fused_int8", 320}})
      if (std::string path = std::string(more) + "/models/" + name + "/model.tflite"; std::filesystem::exists(path))
        models.push_back({path, step_ms, step_ms == 30});
  return models;
}

}  // namespace

TEST_CASE("state belongs to its context, and a reset forgets it", "[context][streaming]") {
  for (const Case& model : streaming_models()) {
    INFO(model.path);
    const auto plan = plan_of(model.path);
    const size_t count = std::min<size_t>(spoken().size(), 100);
    const auto first = Stream(plan, 1).listen(0, count), second = Stream(plan, 2).listen(0, count);
    CHECK((first != second));

    Stream a(plan, 1), b(plan, 2);
    for (size_t at = 0; at < count; ++at) {
      INFO("step " << at);
      CHECK((a.listen(at, 1)[0] == first[at]));
      CHECK((b.listen(at, 1)[0] == second[at]));
    }
    CHECK((a.listen(0, count) != first));  // it remembers, and goes on from there
    a.reset();
    CHECK((a.listen(0, count) == first));
    CHECK((Stream(plan, 2).listen(0, count) == second));  // what one context learnt is in no other, made later
  }
}

TEST_CASE("a state bound to two buffers that change places is carried as by copies", "[context][streaming]") {
  for (const Case& model : streaming_models()) {
    INFO(model.path);
    const auto plan = plan_of(model.path);
    Stream bound(plan, 1, Carry::bound);
    const auto copied = Stream(plan, 1).listen(0, 50);
    CHECK((bound.listen(0, 50) == copied));
    bound.reset();
    CHECK((bound.listen(0, 50) == copied));
  }
}

TEST_CASE("ten minutes of sound leave nothing behind", "[context][streaming]") {
  for (const Case& model : streaming_models()) {
    INFO(model.path);
    Stream stream(plan_of(model.path), 1, Carry::bound);
    const size_t loop = spoken().size(), steps = 10 * 60 * 1000 / model.step_ms / loop * loop;
    const auto beginning = stream.listen(0, loop);
    stream.reset();
    bool ok = true;
    for (size_t at = 0; at < 100; ++at) ok = stream.step(at % loop) && ok;
#ifdef ONEWEIGHT_TESTS_COUNT
    const long allocated = allocations;
    const auto held = mallinfo2();
#endif
    for (size_t at = 100; at < steps - loop; ++at) ok = stream.step(at % loop) && ok;
#ifdef ONEWEIGHT_TESTS_COUNT
    const auto held_then = mallinfo2();  // before CHECK allocates
    const long allocated_then = allocations;
    CHECK(allocated_then == allocated);
    CHECK(held_then.uordblks + held_then.hblkhd == held.uordblks + held.hblkhd);
#endif
    CHECK(ok);
    const auto last = stream.listen(0, loop), again = stream.listen(0, loop);
    if (model.forgets) CHECK((again == last));  // the same sound again and again has the same answers
    stream.reset();
    CHECK((stream.listen(0, loop) == beginning));
  }
}
