// The subcommands: each takes its arguments and returns an exit code.
#ifndef ONEWEIGHT_EXAMPLES_COMMANDS_H
#define ONEWEIGHT_EXAMPLES_COMMANDS_H

#include <string>
#include <vector>

#include "common.h"
#include "picture_run.h"

namespace program {

struct InspectArguments {
  ModelArguments model;
  bool tensors = false, operators = false, json = false;
};
int inspect(const InspectArguments& arguments);

struct RunArguments {
  ModelArguments model;
  std::vector<std::string> inputs;  // "FILE.npy" in order, or "NAME=FILE.npy"
  std::string output_folder;
  std::vector<std::string> keep;  // tensors to print as well
  int runs = 1, top = 5, threads = 1;
  PictureArguments picture;
  std::string audio;                // a WAV file
  int rate = 16000;                 // samples a second that the model takes
};
int run(const RunArguments& arguments);

struct VerifyArguments {
  std::vector<std::string> folders;
  std::string filter;
  int jobs = 0, threads = 1, tile_rows = 0;
  double timeout = 60;  // seconds for one case
  bool skip_measured = false;
};
int verify(const VerifyArguments& arguments);

struct BenchmarkArguments {
  ModelArguments model;
  std::vector<std::string> inputs;  // as in RunArguments
  int runs = 0;  // 0: for about a second
  int threads = 1, contexts = 1;
  std::string cadence;  // "10ms": a run begins that often; empty: one behind the other
  bool profile = false, json = false;
};
int benchmark(const BenchmarkArguments& arguments);

struct MemoryArguments {
  ModelArguments model;
  int contexts = 1;
  std::string timeline;             // a picture to write: .svg or .html
  bool steps = false, ladder = false, json = false;
};
int memory(const MemoryArguments& arguments);

struct ShrinkArguments {
  ModelArguments model;             // but for the file, of the runs that compare answers
  std::string output;
  std::string storage;              // "half" or "int8"
  std::vector<std::string> inputs;  // as in RunArguments
};
int shrink(const ShrinkArguments& arguments);

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_COMMANDS_H
