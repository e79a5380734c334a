# The program runs the cases of the repository, and the suites beside it where there are any.

set(ONEWEIGHT_CASES_OPTIONS)
if(ONEWEIGHT_SANITIZE)  # sanitizers cost the memory and the time that some cases limit
  set(ONEWEIGHT_CASES_OPTIONS --skip-measured --timeout 300)
endif()

add_test(NAME "cases: the repository's" COMMAND oneweight_program verify "${ONEWEIGHT_TEST_DATA}" ${ONEWEIGHT_CASES_OPTIONS})

# Suites of cases outside the repository; each must pass as listed in tests/data/must_pass/<suite>.txt: one line for
# each case or folder of cases.
set(ONEWEIGHT_SUITES "${PROJECT_SOURCE_DIR}/../shared/data" CACHE PATH "Folder with suites of cases, where there is one")
file(GLOB lists CONFIGURE_DEPENDS "${ONEWEIGHT_TEST_DATA}/must_pass/*.txt")
foreach(list ${lists})
  get_filename_component(suite ${list} NAME_WE)
  if(IS_DIRECTORY "${ONEWEIGHT_SUITES}/${suite}")
    file(STRINGS ${list} cases REGEX "^[^#]")
    list(TRANSFORM cases PREPEND "${ONEWEIGHT_SUITES}/${suite}/")
    add_test(NAME "cases: ${suite}" COMMAND oneweight_program verify ${cases} ${ONEWEIGHT_CASES_OPTIONS})
    add_test(NAME "cases: ${suite}, three threads a run"
             COMMAND oneweight_program verify ${cases} ${ONEWEIGHT_CASES_OPTIONS} --threads 3 --skip-measured)
  else()
    message(STATUS "oneweight: no ${ONEWEIGHT_SUITES}/${suite}: its cases are not run")
  endif()
endforeach()

# No kernel leaves its tensors on any model of the suites, passing or not.
if(IS_DIRECTORY "${ONEWEIGHT_SUITES}" AND NOT ONEWEIGHT_SANITIZE)
  add_test(NAME "guard pages: suites" COMMAND context_tests "[guard]")
  set_tests_properties("guard pages: suites" PROPERTIES ENVIRONMENT "ONEWEIGHT_MORE_DATA=${ONEWEIGHT_SUITES}")
  add_test(NAME "streams: suites" COMMAND context_tests "[streaming]")
  set_tests_properties("streams: suites" PROPERTIES ENVIRONMENT "ONEWEIGHT_MORE_DATA=${ONEWEIGHT_SUITES}")
endif()

# What the program says and returns when it is used wrongly.
function(oneweight_program_test name expected_code expected_text)
  add_test(NAME "program: ${name}"
           COMMAND "${CMAKE_COMMAND}" -D "PROGRAM=$<TARGET_FILE:oneweight_program>" -D "CODE=${expected_code}"
                   -D "TEXT=${expected_text}" -P "${CMAKE_CURRENT_SOURCE_DIR}/program_test.cmake" -- ${ARGN})
endfunction()
set(ONEWEIGHT_SMALL_MODEL "${ONEWEIGHT_TEST_DATA}/models/tflm_hello_world_int8")
oneweight_program_test("version" 0 "oneweight ${PROJECT_VERSION}" --version)
oneweight_program_test("help lists exit codes" 0 "Exit codes" --help)
oneweight_program_test("no command is wrong usage" 2 "subcommand")
oneweight_program_test("a file that is not there" 3 "nowhere.tflite" run nowhere.tflite)
oneweight_program_test("a file that is no model" 3 "case.json" inspect "${ONEWEIGHT_SMALL_MODEL}/case.json")
oneweight_program_test("inspect" 0 "FULLY_CONNECTED" inspect "${ONEWEIGHT_SMALL_MODEL}/model.tflite")
oneweight_program_test("run" 0 "output 0" run "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --input "${ONEWEIGHT_SMALL_MODEL}/in_0.npy")
oneweight_program_test("an input of another type" 3 "has type int8, the array float32" run
                       "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --input "${ONEWEIGHT_TEST_DATA}/models/tflm_hello_world_float/in_0.npy")
oneweight_program_test("a truncated input" 3 "truncated.npy: it is truncated" run "${ONEWEIGHT_SMALL_MODEL}/model.tflite"
                       --input "${CMAKE_CURRENT_SOURCE_DIR}/wrong_cases/truncated.npy")
oneweight_program_test("an input of another shape" 3 "has shape .1, 1., the array" run "${ONEWEIGHT_SMALL_MODEL}/model.tflite"
                       --input "${ONEWEIGHT_TEST_DATA}/models/tflm_micro_speech/in_0.npy")
set(ONEWEIGHT_PICTURE "${ONEWEIGHT_TEST_DATA}/pictures/cat.png")
set(ONEWEIGHT_PICTURE_MODEL "${ONEWEIGHT_TEST_DATA}/models/coral_mobilenet_v1_025_128/model.tflite")
oneweight_program_test("a picture, with the labels packed into the model" 0 "range of the input's quantisation.*0.39[0-9]*  Egyptian cat.*drawn into" run
                       "${ONEWEIGHT_PICTURE_MODEL}" --image "${ONEWEIGHT_PICTURE}" --out-image "${CMAKE_CURRENT_BINARY_DIR}/drawn.png")
oneweight_program_test("labels of the user" 0 "  class 286" run "${ONEWEIGHT_PICTURE_MODEL}" --image "${ONEWEIGHT_PICTURE}"
                       --labels "${ONEWEIGHT_TEST_DATA}/must_pass/models.txt")
oneweight_program_test("labels that are not there" 3 "nowhere.txt" run "${ONEWEIGHT_PICTURE_MODEL}" --image "${ONEWEIGHT_PICTURE}" --labels nowhere.txt)
oneweight_program_test("a picture that is none" 3 "case.json' is not a picture" run "${ONEWEIGHT_PICTURE_MODEL}"
                       --image "${ONEWEIGHT_SMALL_MODEL}/case.json")
oneweight_program_test("a model that takes no picture" 3 "no input of shape" run "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --image "${ONEWEIGHT_PICTURE}")
oneweight_program_test("a picture cannot be written" 3 "cannot write" run "${ONEWEIGHT_PICTURE_MODEL}" --image "${ONEWEIGHT_PICTURE}"
                       --out-image "${ONEWEIGHT_TEST_DATA}/nowhere/drawn.png")
oneweight_program_test("a drawing without a picture" 2 "--image" run "${ONEWEIGHT_PICTURE_MODEL}" --out-image drawn.png)
set(ONEWEIGHT_SOUND "${ONEWEIGHT_TEST_DATA}/sounds/tone.wav")
oneweight_program_test("a model that takes no sound" 3 "does not take a row of samples" run "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --audio "${ONEWEIGHT_SOUND}")
oneweight_program_test("a sound that is none" 3 "cat.png' is not a WAV file" run "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --resize 0=1,8
                       --audio "${ONEWEIGHT_PICTURE}")
oneweight_program_test("a sound, window by window" 0 "1.00 s at 8000 samples a second, taken at 16000; 2000 windows of 8 samples.*class 0" run
                       "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --resize 0=1,8 --audio "${ONEWEIGHT_SOUND}")
if(IS_DIRECTORY "${ONEWEIGHT_SUITES}/models")
  oneweight_program_test("what a sound is" 0 "0.9[0-9]*  Sine wave" run "${ONEWEIGHT_SUITES}/models/yamnet/model.tflite" --audio "${ONEWEIGHT_SOUND}")
endif()
oneweight_program_test("resize" 0 "int8 .3, 1." run "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --resize 0=3,1)
oneweight_program_test("a tensor by name" 0 "tensor 'StatefulPartitionedCall:0'" run "${ONEWEIGHT_SMALL_MODEL}/model.tflite"
                       --keep StatefulPartitionedCall:0)
oneweight_program_test("verify with a filter" 0 "1 passed, 0 failed, 0 skipped" verify "${ONEWEIGHT_TEST_DATA}" --filter hello_world_int8)
oneweight_program_test("benchmark of runs at fixed times" 0 "first_ms.*median_ms.*p99_ms.*max_ms" benchmark
                       "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --cadence 1ms --runs 20 --json)
oneweight_program_test("a cadence without a unit" 2 "--cadence 10: expected milliseconds" benchmark "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --cadence 10)
oneweight_program_test("benchmark" 0 "median_ms.*p95_ms.*open_ms.*cold_ms.*forecast_bytes" benchmark
                       "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --runs 5 --json)
if(NOT ONEWEIGHT_SANITIZE)  # sanitizers lock nothing
  oneweight_program_test("locked weights" 0 "locked in memory: [1-9]" memory "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --lock-weights)
endif()
oneweight_program_test("memory" 0 "forecast_bytes.*plan_bytes.*base_rss_bytes.*contexts.*file_backed_bytes.*resident_weight_bytes" memory
                       "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --contexts 3 --json)
oneweight_program_test("memory, step by step" 0 "alive at the peak, step [0-9]+ of 3 .FULLY_CONNECTED.*bytes alive while a step runs.*# < peak" memory
                       "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --contexts 0)
oneweight_program_test("memory as JSON" 0 "peak_step.*peak_operator.*\"steps\":.*FULLY_CONNECTED.*alive_bytes.*scratch_bytes.*\"tensors\":.*offset.*first_step.*last_step.*kind"
                       memory "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --contexts 0 --json)
foreach(kind svg html)
  oneweight_program_test("a timeline as ${kind}" 0 "picture of the timeline: .*timeline.${kind}" memory "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --contexts 0
                         --timeline "${CMAKE_CURRENT_BINARY_DIR}/timeline.${kind}")
endforeach()
oneweight_program_test("a timeline of another kind" 2 "timeline.png: expected a name that ends with .svg or .html" memory "${ONEWEIGHT_SMALL_MODEL}/model.tflite"
                       --timeline timeline.png)
oneweight_program_test("a timeline cannot be written" 3 "timeline.svg cannot be written" memory "${ONEWEIGHT_SMALL_MODEL}/model.tflite"
                       --timeline "${ONEWEIGHT_TEST_DATA}/nowhere/timeline.svg")
oneweight_program_test("profile" 0 "read KiB weights KiB written KiB scratch KiB.*FULLY_CONNECTED.*all  .*step operator" benchmark
                       "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --runs 5 --profile)
oneweight_program_test("profile as JSON" 0 "profile.*operator.*ms.*read_bytes.*weight_bytes.*written_bytes.*scratch_bytes" benchmark
                       "${ONEWEIGHT_SMALL_MODEL}/model.tflite" --runs 5 --profile --json)
set(ONEWEIGHT_FLOAT_MODEL "${ONEWEIGHT_TEST_DATA}/models/mlperf_kws_f32")
oneweight_program_test("shrink to half" 0 "constants became half.*is too small to gain anything: .*outputs beside the float model's, on the inputs.*output 0 .*largest error" shrink
                       "${ONEWEIGHT_FLOAT_MODEL}/model.tflite" "${CMAKE_CURRENT_BINARY_DIR}/shrunk.tflite" --storage half --input "${ONEWEIGHT_FLOAT_MODEL}/in_0.npy")
oneweight_program_test("a model with nothing to shrink is copied" 0 "nothing to shrink; .*copied.tflite is a copy" shrink
                       "${ONEWEIGHT_SMALL_MODEL}/model.tflite" "${CMAKE_CURRENT_BINARY_DIR}/copied.tflite" --storage int8)
oneweight_program_test("shrink to an unknown storage" 2 "int4 not in {half,int8}" shrink "${ONEWEIGHT_FLOAT_MODEL}/model.tflite" shrunk.tflite --storage int4)
oneweight_program_test("shrink what is no model" 3 "case.json: not a .tflite model" shrink "${ONEWEIGHT_SMALL_MODEL}/case.json"
                       "${CMAKE_CURRENT_BINARY_DIR}/shrunk.tflite" --storage half)
oneweight_program_test("shrink with an input of another shape" 3 "has shape .*, the array" shrink "${ONEWEIGHT_FLOAT_MODEL}/model.tflite"
                       "${CMAKE_CURRENT_BINARY_DIR}/shrunk.tflite" --storage half --input "${ONEWEIGHT_TEST_DATA}/models/tflm_hello_world_float/in_0.npy")
oneweight_program_test("a shrunk model cannot be written" 3 "shrunk.tflite cannot be written" shrink "${ONEWEIGHT_FLOAT_MODEL}/model.tflite"
                       "${ONEWEIGHT_TEST_DATA}/nowhere/shrunk.tflite" --storage half)
oneweight_program_test("a folder in place of a shrunk model" 3 "is not a regular file" shrink "${ONEWEIGHT_FLOAT_MODEL}/model.tflite"
                       "${ONEWEIGHT_TEST_DATA}" --storage half)
oneweight_program_test("verify without cases" 2 "no case" verify "${CMAKE_CURRENT_SOURCE_DIR}/support")
oneweight_program_test("a wrong answer is named" 1 "differs first at .0, 0.: got.*want.*0 passed, 1 failed, 0 skipped" verify
                       "${CMAKE_CURRENT_SOURCE_DIR}/wrong_cases/wrong_answer")
oneweight_program_test("an unexpected answer is a failure" 1 "must be refused" verify "${CMAKE_CURRENT_SOURCE_DIR}/wrong_cases/not_refused")

# The examples that take pictures.
if(TARGET oneweight_example_image_labels)
  add_test(NAME "example: image_labels" COMMAND oneweight_example_image_labels "${ONEWEIGHT_PICTURE_MODEL}"
                                                "${ONEWEIGHT_TEST_DATA}/must_pass/models.txt" "${ONEWEIGHT_PICTURE}")
  set_tests_properties("example: image_labels" PROPERTIES PASS_REGULAR_EXPRESSION "0.39[0-9]  286")
  if(IS_DIRECTORY "${ONEWEIGHT_SUITES}/models")
    add_test(NAME "example: segmentation_mask"
             COMMAND oneweight_example_segmentation_mask "${ONEWEIGHT_SUITES}/models/coral_deeplabv3_dm05_pascal/model.tflite" "${ONEWEIGHT_PICTURE}"
                     "${CMAKE_CURRENT_BINARY_DIR}/mask.png")
    set_tests_properties("example: segmentation_mask" PROPERTIES PASS_REGULAR_EXPRESSION "class 8: [3-6]")
    add_test(NAME "example: object_boxes"
             COMMAND oneweight_example_object_boxes "${ONEWEIGHT_SUITES}/models/coral_traffic_detector_uint8/model.tflite" "${ONEWEIGHT_PICTURE}"
                     "${CMAKE_CURRENT_BINARY_DIR}/boxes.png")
  endif()
endif()

# The examples that take sounds.
function(oneweight_sound_test name example expected_code expected_text)
  add_test(NAME "example: ${name}"
           COMMAND "${CMAKE_COMMAND}" -D "PROGRAM=$<TARGET_FILE:oneweight_example_${example}>" -D "CODE=${expected_code}"
                   -D "TEXT=${expected_text}" -P "${CMAKE_CURRENT_SOURCE_DIR}/program_test.cmake" -- ${ARGN})
endfunction()
if(TARGET oneweight_example_wake_word)
  set(ONEWEIGHT_SPEECH "${ONEWEIGHT_TEST_DATA}/sounds/okay_nabu.wav")
  set(ONEWEIGHT_WAKE_WORD_MODEL "${ONEWEIGHT_TEST_DATA}/models/mww_v2_okay_nabu/model.tflite")
  # Once, when it has been said; not for the words before it.
  oneweight_sound_test("wake_word hears it" wake_word 0 "^2\\.[4-7][0-9] s: probability 0\\.[89][0-9]\n$" "${ONEWEIGHT_WAKE_WORD_MODEL}" "${ONEWEIGHT_SPEECH}")
  oneweight_sound_test("wake_word hears nothing" wake_word 0 "^nothing was heard\n$" "${ONEWEIGHT_WAKE_WORD_MODEL}" "${ONEWEIGHT_SPEECH}" 1.01)
  oneweight_sound_test("wake_word, another rate" wake_word 1 "at 16 kHz" "${ONEWEIGHT_WAKE_WORD_MODEL}" "${ONEWEIGHT_SOUND}")
  oneweight_sound_test("wake_word, another model" wake_word 1 "rows of 40 features|not uint8" "${ONEWEIGHT_SMALL_MODEL}/model.tflite" "${ONEWEIGHT_SPEECH}")
  oneweight_sound_test("noise_suppression, another model" noise_suppression 1 "no input 1"
                       "${ONEWEIGHT_TEST_DATA}/models/tflm_hello_world_float/model.tflite" "${ONEWEIGHT_SPEECH}" nowhere.wav)
  if(IS_DIRECTORY "${ONEWEIGHT_SUITES}/models")
    oneweight_sound_test("wake_word hears a voice" wake_word 0 "^0\\.[5-9][0-9] s: probability 0\\.[89][0-9]\n$"
                         "${ONEWEIGHT_SUITES}/models/mww_v2_vad/model.tflite" "${ONEWEIGHT_SPEECH}")
    add_executable(oneweight_noisy_speech examples/noisy_speech.cc)
    target_compile_features(oneweight_noisy_speech PRIVATE cxx_std_20)
    target_include_directories(oneweight_noisy_speech PRIVATE "${PROJECT_SOURCE_DIR}")
    target_compile_options(oneweight_noisy_speech PRIVATE ${ONEWEIGHT_WARNINGS})
    add_test(NAME "example: noise_suppression"
             COMMAND oneweight_noisy_speech "$<TARGET_FILE:oneweight_example_noise_suppression>"
                     "${ONEWEIGHT_SUITES}/models/dtln_1_f32/model.tflite" "${ONEWEIGHT_SPEECH}" "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
endif()
