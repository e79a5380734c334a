# oneweight::kernels: the kernels of all operators, compiled once in the user's own build, with the user's
# compiler and flags. Used by the build and by the installed package.
#
#   oneweight_add_kernels()    makes the targets oneweight_kernels and oneweight::kernels

set(ONEWEIGHT_KERNELS_TEMPLATE "${CMAKE_CURRENT_LIST_DIR}/kernels.cc.in")

# Writes the source of one group: `header` under include/oneweight, `rows` the operator set it defines.
function(oneweight_kernels_source folder name header rows core result)
  set(ONEWEIGHT_GROUP_HEADER "${header}")
  set(ONEWEIGHT_GROUP_ROWS "${rows}")
  set(ONEWEIGHT_GROUP_CORE "${core}")
  configure_file("${ONEWEIGHT_KERNELS_TEMPLATE}" "${folder}/kernels_${name}.cc" @ONLY)
  set(${result} "${folder}/kernels_${name}.cc" PARENT_SCOPE)
endfunction()

function(oneweight_add_kernels)
  set(sources)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/oneweight_kernels")
  foreach(group Matrix Elementwise Window Movement)
    string(TOLOWER ${group} name)
    set(core "")
    if(group STREQUAL Movement)  # the planner and target detection go with the group that compiles fastest
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
