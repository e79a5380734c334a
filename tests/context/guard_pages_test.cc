// No kernel reads or writes outside its tensors and scratch; and the bits of an answer do not depend on how its rows are split into
// bands or tiles, nor on the order of the steps.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "tests/support/guarded_run.h"
#include "tests/support/test_data.h"

namespace {

namespace fs = std::filesystem;

// Models under the repository's test data, and under ONEWEIGHT_MORE_DATA when it is set.
std::vector<std::string> all_models() {
  std::vector<std::string> roots = {ONEWEIGHT_TEST_DATA};
  if (const char* more = std::getenv("ONEWEIGHT_MORE_DATA"); more && fs::exists(more)) roots.push_back(more);
  std::vector<std::string> paths;
  for (const std::string& root : roots)
    for (const auto& entry : fs::recursive_directory_iterator(root))
      if (entry.path().filename() == "model.tflite") paths.push_back(entry.path().string());
  return paths;
}

enum class Outcome : int { agrees = 0, not_planned = 1, differs = 2 };

using Answers = std::vector<std::vector<std::byte>>;

// Without an answer when the run fails.
std::optional<Answers> run_plain(oneweight::ExecutionContext& context) {
  if (!context.run().ok()) return {};
  Answers answers;
  for (size_t i = 0; i < context.plan()->outputs().size(); ++i) {
    const auto bytes = context.output_bytes(static_cast<int>(i));
    answers.emplace_back(bytes.begin(), bytes.end());
  }
  return answers;
}

// The inputs as fill_inputs() makes them.
std::optional<Answers> run_guarded(const oneweight::Plan& plan, oneweight::ExecutionContext& filled, int64_t band) {
  GuardedRun guarded(plan);
  for (size_t i = 0; i < plan.inputs().size(); ++i) {
    const auto from = filled.input_bytes(static_cast<int>(i));
    if (!from.empty()) std::memcpy(guarded.address(plan.inputs()[i]), from.data(), from.size());
  }
  for (size_t t = 0; t < plan.tensors().size(); ++t) {
    const auto& tensor = plan.tensors()[t];
    if (tensor.placement != oneweight::Placement::state || tensor.bytes == 0) continue;
    const bool bytes = oneweight::tensor_type_bits(tensor.type) == 8 && !tensor.quantization->zero_points.empty();
    std::memset(guarded.address(static_cast<int>(t)), bytes ? static_cast<int>(tensor.quantization->zero_points[0]) : 0, static_cast<size_t>(tensor.bytes));
  }
  if (!guarded.run(band)) return {};
  Answers answers;
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    const std::byte* from = guarded.address(plan.outputs()[i]);
    answers.emplace_back(from, from + filled.output_bytes(static_cast<int>(i)).size());
  }
  return answers;
}

// In a child process: a touched guard page ends it.
Outcome compare(const std::string& path) {
  auto model = oneweight::ModelView::open(path.c_str());
  if (!model.ok()) return Outcome::not_planned;
  std::optional<Answers> want;
  for (int tile_rows : {-1, 0, 1, 2, 7}) {
    oneweight::PlanOptions options;
    options.tile_rows = tile_rows;
    options.reorder = tile_rows >= 0;
    auto plan = oneweight::make_plan<oneweight::opset::All>(*model, options);
    if (!plan.ok()) return tile_rows < 0 ? Outcome::not_planned : Outcome::differs;
    auto context = oneweight::ExecutionContext::create(*plan);
    if (!context.ok()) return Outcome::not_planned;
    fill_inputs(*context);
    const std::optional<Answers> got = run_plain(*context);
    if (tile_rows < 0) want = got;
    if (got != want) return Outcome::differs;
    for (int64_t band : {0, 1, 3}) {
      // Large models at one band height only.
      if (band > 0 && (tile_rows > 0 || (*plan)->context_bytes() > (8 << 20))) continue;
      if (run_guarded(**plan, *context, band) != want) return Outcome::differs;
    }
  }
  return Outcome::agrees;
}

}  // namespace

TEST_CASE("no kernel leaves its tensors, in bands, in tiles or whole", "[context][guard]") {
  int agreeing = 0;
  for (const std::string& path : all_models()) {
    const pid_t child = fork();
    if (child == 0) _exit(static_cast<int>(compare(path)));
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    INFO(path);
    if (!WIFEXITED(status)) FAIL_CHECK("a tensor was left (signal " << WTERMSIG(status) << ")");
    if (WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(Outcome::differs)) FAIL_CHECK("the answers differ");
    agreeing += WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(Outcome::agrees);
  }
  CHECK(agreeing > 0);
}

TEST_CASE("guarded memory does stop an access one byte behind it", "[context][guard]") {
  const pid_t child = fork();
  if (child == 0) {
    const GuardedMemory memory(10);
    volatile std::byte* end = memory.data() + 10;
    *end = std::byte{1};
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK_FALSE((WIFEXITED(status) && WEXITSTATUS(status) == 0));  // a signal, or a sanitizer's report of it
}
