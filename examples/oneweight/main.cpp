// oneweight: looks into .tflite models, runs, verifies, measures and shrinks them.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "commands.h"

namespace {

void add_model(CLI::App* command, program::ModelArguments* arguments) {
  command->add_option("MODEL", arguments->model, "The .tflite file")->required();
  command->add_option("--signature", arguments->signature, "Run this signature instead of the main subgraph");
  command->add_option("--resize", arguments->resize, "New shape of an input: NUMBER or NAME=EXTENT,EXTENT,...; may be repeated")
      ->allow_extra_args(false);
}
void add_tile_rows(CLI::App* command, int* rows) {
  command->add_option("--tile-rows", *rows, "Rows of a tile wherever steps can run tile by tile; 0: where it saves memory, -1: nowhere")
      ->check(CLI::Range(-1, 1 << 20))->capture_default_str();
}
void add_memory(CLI::App* command, program::ModelArguments* arguments) {
  command->add_option("--memory-limit", arguments->memory_limit, "Bytes that a context and derived constants may have, as 140MiB: tiles get as low as it takes");
  command->add_option("--extra-work", arguments->extra_work, "Work that tiles may add without need, as a share of all work")
      ->check(CLI::Range(0.0, 100.0))->capture_default_str();
  add_tile_rows(command, &arguments->tile_rows);
}

void add_lock(CLI::App* command, program::ModelArguments* arguments) {
  command->add_flag("--lock-weights", arguments->lock_weights, "Read the whole file at first and keep it in memory, so that no run waits for it");
}

}  // namespace

int main(int count, char** values) {
  CLI::App app("Looks into .tflite models, runs, verifies, measures and shrinks them.", "oneweight");
  app.set_version_flag("--version", "oneweight " ONEWEIGHT_VERSION);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 all is well; 1 a case failed (verify); 2 wrong usage; 3 a file could not be read, or a model\n"
             "could not be opened, planned or run (the reason is printed to stderr as a sentence).");

  program::InspectArguments inspect;
  CLI::App* command = app.add_subcommand("inspect", "Signatures, operators, weights by storage type, what is not built in");
  add_model(command, &inspect.model);
  command->add_flag("--tensors", inspect.tensors, "List every tensor");
  command->add_flag("--operators", inspect.operators, "List every operator");
  command->add_flag("--json", inspect.json, "Print one JSON object");

  program::RunArguments run;
  command = app.add_subcommand("run", "Run a model on npy files, a picture or a sound; without any, on reproducible pseudo-random inputs");
  add_model(command, &run.model);
  add_memory(command, &run.model);
  add_lock(command, &run.model);
  CLI::Option* files = command->add_option("-i,--input", run.inputs, "FILE.npy in the order of the inputs, or NAME=FILE.npy; may be repeated")
      ->allow_extra_args(false);
  CLI::Option* image = command->add_option("--image", run.picture.image, "A picture (PNG, JPEG, BMP, ...) for a model that takes one; prints what the answer means")->excludes(files);
  command->add_option("--out-image", run.picture.out_image, "Draw the answer into the picture and write it here (PNG)")->needs(image);
  command->add_option("--labels", run.picture.labels, "Names of the classes, one a line; default: those packed into the model");
  command->add_option("--audio", run.audio, "A WAV file for a model that takes samples, window by window; prints the classes with the highest mean")->excludes(files)->excludes(image);
  command->add_option("--rate", run.rate, "Samples a second the model takes")->check(CLI::Range(1000, 192000))->capture_default_str();
  command->add_option("--fit", run.picture.fit, "How the picture gets the model's size")->check(CLI::IsMember({"auto", "stretch", "letterbox", "crop"}))->capture_default_str();
  command->add_option("--range", run.picture.range, "LOW,HIGH: the numbers that black and white become; default: as metadata or quantisation say")->delimiter(',')->expected(2)->needs(image);
  command->add_option("--score", run.picture.score, "Leave out boxes with lower scores")->capture_default_str();
  command->add_option("-o,--output", run.output_folder, "Write out_0.npy, out_1.npy, ... into this folder");
  command->add_option("--keep", run.keep, "Print this tensor too; may be repeated")->allow_extra_args(false);
  command->add_option("--runs", run.runs, "Run so many times (state is kept)")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--threads", run.threads, "Threads inside a run")->check(CLI::Range(1, 64))->capture_default_str();
  command->add_option("--top", run.top, "Print so many largest values of an output")->check(CLI::NonNegativeNumber)->capture_default_str();

  program::VerifyArguments verify;
  command = app.add_subcommand("verify", "Run every case folder (model.tflite, in_*.npy, out_*.npy, case.json) under the given ones");
  command->add_option("DIR", verify.folders, "Folders with cases, at any depth")->required();
  command->add_option("--filter", verify.filter, "Only cases with this text in their path");
  command->add_option("-j,--jobs", verify.jobs, "Cases at one time; default: one for each processor")->check(CLI::PositiveNumber);
  command->add_option("--threads", verify.threads, "Threads inside a run; every step that can be divided is")->check(CLI::Range(1, 64))->capture_default_str();
  add_tile_rows(command, &verify.tile_rows);
  command->add_option("--timeout", verify.timeout, "Seconds a case may take")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_flag("--skip-measured", verify.skip_measured, "Skip cases that limit time or memory (for sanitizers and busy machines)");

  program::BenchmarkArguments benchmark;
  command = app.add_subcommand("benchmark", "Latency: one context on one thread unless told otherwise");
  add_model(command, &benchmark.model);
  add_memory(command, &benchmark.model);
  add_lock(command, &benchmark.model);
  command->add_option("-i,--input", benchmark.inputs, "FILE.npy in the order of the inputs, or NAME=FILE.npy; default: pseudo-random inputs")
      ->allow_extra_args(false);
  command->add_option("--runs", benchmark.runs, "Runs to measure; default: for about a second")->check(CLI::PositiveNumber);
  CLI::Option* threads = command->add_option("--threads", benchmark.threads, "Threads inside a run");
  threads->check(CLI::Range(1, 64))->capture_default_str();
  CLI::Option* several = command->add_option("--contexts", benchmark.contexts, "Contexts that run at the same time, a thread each")
      ->check(CLI::PositiveNumber)->capture_default_str()->excludes(threads);
  command->add_option("--cadence", benchmark.cadence, "Begin a run that often, as 10ms or 2.5ms, and tell the slow ones: for real time")->excludes(several);
  command->add_flag("--profile", benchmark.profile, "Time and bytes of every operator");
  command->add_flag("--json", benchmark.json, "Print one JSON object");

  program::MemoryArguments memory;
  command = app.add_subcommand("memory", "What a context will need, step by step and tensor by tensor at the peak, and what contexts do cost");
  add_model(command, &memory.model);
  add_memory(command, &memory.model);
  add_lock(command, &memory.model);
  command->add_option("--contexts", memory.contexts, "Make and run so many contexts, and measure after each; 0: only the forecast")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_option("--timeline", memory.timeline, "Write a picture of what holds which bytes at which steps: FILE.svg, or FILE.html to look into");
  command->add_flag("--steps", memory.steps, "Print all steps, not only those that hold most");
  command->add_flag("--ladder", memory.ladder, "Print what less memory costs: the bytes of plans that may add more and more work");
  command->add_flag("--json", memory.json, "Print one JSON object");

  program::ShrinkArguments shrink;
  command = app.add_subcommand("shrink", "Store the float weights of a model in half of their bytes or a quarter, and say what that does to its answers");
  add_model(command, &shrink.model);
  command->add_option("OUT", shrink.output, "The file to write; may be MODEL. A model with nothing to shrink is copied")->required();
  command->add_option("--storage", shrink.storage, "half: all weights that are read in place; int8: those of convolutions and dense layers, a scale for each output channel")
      ->required()->check(CLI::IsMember({"half", "int8"}));
  command->add_option("-i,--input", shrink.inputs, "FILE.npy in the order of the inputs, or NAME=FILE.npy, to compare the answers; default: pseudo-random inputs")
      ->allow_extra_args(false);

  try {
    app.parse(count, values);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? program::kSuccess : program::kWrongUsage;
  }
  if (app.got_subcommand("inspect")) return program::inspect(inspect);
  if (app.got_subcommand("run")) return program::run(run);
  if (app.got_subcommand("verify")) return program::verify(verify);
  if (app.got_subcommand("benchmark")) return program::benchmark(benchmark);
  if (app.got_subcommand("shrink")) return program::shrink(shrink);
  return program::memory(memory);
}
