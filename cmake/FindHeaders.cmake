# Finds the headers oneweight includes: Highway, flatbuffers, Eigen. Only include folders are wanted (no
# library of theirs is linked), so this looks for headers and reads their versions instead of asking for
# config packages, which demand libraries too. Used by the build and by the installed package.
#
#   oneweight_find_headers(MISSING_VARIABLE)
#
# sets ONEWEIGHT_HWY_INCLUDE_DIR, ONEWEIGHT_FLATBUFFERS_INCLUDE_DIR, ONEWEIGHT_EIGEN_INCLUDE_DIR (cache) and
# lists in MISSING_VARIABLE which of "hwy flatbuffers eigen" were not found or are too old.

# The version MAJOR.MINOR that `file` defines in macros named like the two given; "0.0" when it does not.
function(oneweight_header_version file major minor result)
  set(version 0.0)
  if(EXISTS "${file}")
    file(STRINGS "${file}" lines REGEX "#define[ \t]+(${major}|${minor})[ \t]+[0-9]+")
    string(REGEX MATCH "${major}[ \t]+([0-9]+)" _ "${lines}")
    set(a "${CMAKE_MATCH_1}")
    string(REGEX MATCH "${minor}[ \t]+([0-9]+)" _ "${lines}")
    set(b "${CMAKE_MATCH_1}")
    if(NOT a STREQUAL "" AND NOT b STREQUAL "")
      set(version "${a}.${b}")
    endif()
  endif()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# One set of headers: the first folder that has `header`; too old ones are reported and not taken.
function(oneweight_find_header_set variable header suffixes version_file major minor least result)
  find_path(${variable} ${header} PATH_SUFFIXES ${suffixes} DOC "Folder that holds ${header}")
  mark_as_advanced(${variable})
  if(NOT ${variable})
    set(${result} FALSE PARENT_SCOPE)
    return()
  endif()
  oneweight_header_version("${${variable}}/${version_file}" ${major} ${minor} found)
  if(found VERSION_LESS least)
    message(STATUS "oneweight: ${${variable}}/${header} is version ${found}; ${least} is needed")
    set(${variable} "${variable}-NOTFOUND" CACHE PATH "Folder that holds ${header}" FORCE)
    set(${result} FALSE PARENT_SCOPE)
  else()
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

function(oneweight_find_headers missing_variable)
  set(missing)
  oneweight_find_header_set(ONEWEIGHT_HWY_INCLUDE_DIR hwy/highway.h "" hwy/base.h HWY_MAJOR HWY_MINOR 1.2 found)
  if(NOT found)
    list(APPEND missing hwy)
  endif()
  oneweight_find_header_set(ONEWEIGHT_FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h "" flatbuffers/base.h
                            FLATBUFFERS_VERSION_MAJOR FLATBUFFERS_VERSION_MINOR 2.0 found)
  if(NOT found)
    list(APPEND missing flatbuffers)
  endif()
  # Eigen counts 3.4 as world 3, major 4; Eigen 5 moved the macros to another file.
  find_path(ONEWEIGHT_EIGEN_INCLUDE_DIR Eigen/Core PATH_SUFFIXES eigen3 DOC "Folder that holds Eigen/Core")
  mark_as_advanced(ONEWEIGHT_EIGEN_INCLUDE_DIR)
  if(NOT ONEWEIGHT_EIGEN_INCLUDE_DIR)
    list(APPEND missing eigen)
  elseif(NOT EXISTS "${ONEWEIGHT_EIGEN_INCLUDE_DIR}/Eigen/Version")
    oneweight_header_version("${ONEWEIGHT_EIGEN_INCLUDE_DIR}/Eigen/src/Core/util/Macros.h" EIGEN_WORLD_VERSION
                             EIGEN_MAJOR_VERSION found)
    if(found VERSION_LESS 3.4)
      message(STATUS "oneweight: ${ONEWEIGHT_EIGEN_INCLUDE_DIR} has Eigen ${found}; 3.4 is needed")
      set(ONEWEIGHT_EIGEN_INCLUDE_DIR ONEWEIGHT_EIGEN_INCLUDE_DIR-NOTFOUND CACHE PATH "" FORCE)
      list(APPEND missing eigen)
    endif()
  endif()
  set(${missing_variable} "${missing}" PARENT_SCOPE)
endfunction()
