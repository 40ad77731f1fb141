# What a wheel holds beside the sources of the package: the library and the program, stripped. With
# GRETA_STATIC_RUNTIME they need libc and libgcc alone, in the versions that manylinux_2_28 has.
# pyproject.toml installs the component `python`.
include(GretaOldGlibc)
foreach(target greta_shared greta-cli)
  target_link_options(${target} PRIVATE -s)
endforeach()
if(GRETA_STATIC_RUNTIME)
  target_link_options(greta_shared PRIVATE -static-libstdc++)
  if(GRETA_GLIBC_IS_NEW)
    greta_run_on_old_glibc(greta_shared greta-cli)
  endif()
endif()
install(FILES "$<TARGET_FILE:greta_shared>" DESTINATION greta COMPONENT python
  RENAME "$<TARGET_SONAME_FILE_NAME:greta_shared>")
install(PROGRAMS "$<TARGET_FILE:greta-cli>" DESTINATION greta/bin COMPONENT python)
