# oneweight::kernels: the kernels of all operators, compiled once in the user's own build, with the user's
# compiler and flags. Used by the build and by the installed package.
#
#   oneweight_add_kernels(INCLUDE_DIR)    makes the targets oneweight_kernels and oneweight::kernels

set(ONEWEIGHT_KERNELS_TEMPLATE "${CMAKE_CURRENT_LIST_DIR}/kernels.cc.in")

# Writes the source of one group: `header` under include/oneweight, `rows` the operator set it defines.
function(oneweight_kernels_source folder name header rows core result)
  set(ONEWEIGHT_GROUP_HEADER "${header}")
  set(ONEWEIGHT_GROUP_ROWS "${rows}")
  set(ONEWEIGHT_GROUP_CORE "${core}")
  configure_file("${ONEWEIGHT_KERNELS_TEMPLATE}" "${folder}/kernels_${name}.cc" @ONLY)
  set(${result} "${folder}/kernels_${name}.cc" PARENT_SCOPE)
endfunction()

function(oneweight_add_kernels include_dir)
  # The groups are those that opset/all.h joins, each in the header of its name: one source file for each.
  set(list_file "${include_dir}/oneweight/opset/all.h")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list_file}")
  file(READ "${list_file}" text)
  string(REGEX MATCH "using All = Join<([^>]*)>" _ "${text}")
  string(REGEX MATCHALL "[A-Za-z0-9]+" groups "${CMAKE_MATCH_1}")
  set(sources)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/oneweight_kernels")
  foreach(group ${groups})
    string(REGEX REPLACE "([a-z0-9])([A-Z])" "\\1_\\2" name ${group})
    string(TOLOWER ${name} name)
    set(core "")
    if(group STREQUAL Movement)  # the planner and target detection go with a group that compiles fast
      set(core "#define ONEWEIGHT_KERNELS_CORE")
    endif()
    oneweight_kernels_source("${folder}" ${name} "oneweight/opset/${name}.h" ${group} "${core}" source)
    list(APPEND sources "${source}")
  endforeach()
  add_library(oneweight_kernels STATIC EXCLUDE_FROM_ALL ${sources})
  add_library(oneweight::kernels ALIAS oneweight_kernels)
  target_link_libraries(oneweight_kernels PUBLIC oneweight::oneweight)
  # What users of the library compile: handles and calls, no kernels. (kernels.h sets it for the files above.)
  target_compile_definitions(oneweight_kernels INTERFACE ONEWEIGHT_EXTERN_KERNELS=1)
  set_target_properties(oneweight_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
