# Binaries that run on another machine: abseil and the C++ library are linked in, libc alone stays shared.

set(CMAKE_EXE_LINKER_FLAGS "${CMAKE_EXE_LINKER_FLAGS} -static-libstdc++ -static-libgcc")

# Debian's package names shared libraries for the absl:: targets and installs the archives beside them.
function(ptxgen_link_absl_archives)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
    if(NOT target MATCHES "^absl::" OR NOT configurations)
      continue()
    endif()
    foreach(configuration IN LISTS configurations)
      get_target_property(library ${target} IMPORTED_LOCATION_${configuration})
      string(REGEX REPLACE "\\.so[0-9.]*$" ".a" archive "${library}")
      if(EXISTS "${archive}")
        set_property(TARGET ${target} PROPERTY IMPORTED_LOCATION_${configuration} "${archive}")
      endif()
    endforeach()
  endforeach()
endfunction()
ptxgen_link_absl_archives()
