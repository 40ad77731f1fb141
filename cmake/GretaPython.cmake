# What a wheel holds beside the sources of the package: the library and the program, stripped. With
# GRETA_STATIC_RUNTIME they need libc alone. pyproject.toml installs the component `python`.
foreach(target greta_shared greta-cli)
  target_link_options(${target} PRIVATE -s)
endforeach()
if(GRETA_STATIC_RUNTIME)
  target_link_options(greta_shared PRIVATE -static-libstdc++ -static-libgcc)
endif()
install(FILES "$<TARGET_FILE:greta_shared>" DESTINATION greta RENAME libgreta.so COMPONENT python)
install(PROGRAMS "$<TARGET_FILE:greta-cli>" DESTINATION greta/bin COMPONENT python)
