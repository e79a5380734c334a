// A case folder: a model, its inputs, the right outputs, and case.json, which says how they are to be compared.
#ifndef ONEWEIGHT_EXAMPLES_CASE_H
#define ONEWEIGHT_EXAMPLES_CASE_H

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "npy.h"

namespace program {

// What an output may differ by. Quantised outputs are compared as stored, in steps.
struct Tolerance {
  double absolute = 0, relative = 0;
  std::optional<double> mean;                // of |got - want|
  std::optional<double> correlation;         // at least
  std::optional<double> differing_fraction;  // share of elements that may be outside absolute and relative
};

struct Case {
  std::filesystem::path folder;
  std::string group;  // operator, or the suite's folder: a row of the table
  std::vector<std::string> input_names, output_names;
  std::vector<Tolerance> tolerances;  // one for each output
  bool refused = false;               // the model or its data must be refused
  bool refusal_accepted = false;      // as well as the right answer
  bool shape_only = false;            // values are random
  bool detections = false;            // outputs are a set of boxes, classes, scores and their count
  bool set_inputs_once = false;
  std::string signature;
  bool signature_by_name = false;     // names above are the signature's; else its names in alphabetical order
  std::vector<std::pair<int, std::vector<int64_t>>> resize;  // by input
  std::vector<std::vector<int64_t>> input_shapes;            // of one run, where inputs of unknown extent get theirs from; may be empty
  int runs = 1;
  bool stacked = false;  // every array has a leading axis, run k uses element k
  std::vector<std::string> extra_cases;
  int contexts = 1;
  bool parallel = false;
  std::optional<double> extra_bytes_per_context, peak_bytes, slowdown;  // limits

  // Wants an idle machine or a process of its own.
  bool measured() const { return extra_bytes_per_context || peak_bytes || slowdown; }
};

// Errors: not_found, invalid_data (with what is wrong in case.json).
oneweight::Expected<Case> read_case(const std::filesystem::path& folder);

// Folders at or under `folder` that hold a case.json, sorted.
std::vector<std::filesystem::path> find_cases(const std::filesystem::path& folder);

// prefix_0.npy, prefix_1.npy, ... of a folder.
oneweight::Expected<std::vector<Array>> read_arrays(const std::filesystem::path& folder, const char* prefix, size_t count);

// With several threads every step that can be divided is. tile_rows: oneweight::PlanOptions.
struct CaseOptions {
  int threads = 1, tile_rows = 0;
};
// Opens, plans, runs and compares; empty when all is right, else one line that says what is not.
std::string run_case(const Case& test, const CaseOptions& options = {});

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_CASE_H
