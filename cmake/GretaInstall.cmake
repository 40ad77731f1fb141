# Rules for `cmake --install`, the files for find_package and pkg-config, and the packages of CPack.
include(CMakePackageConfigHelpers)
set(GRETA_MODELS_DIR "${CMAKE_INSTALL_DATADIR}/greta/models")
set(cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/greta")

install(TARGETS greta greta_embedded EXPORT gretaTargets)
if(GRETA_SHARED AND TARGET greta_shared)
  install(TARGETS greta_shared EXPORT gretaTargets)
endif()
install(FILES greta.h greta_compute.h TYPE INCLUDE)
if(TARGET greta-cli)
  install(TARGETS greta-cli)
  if(TARGET greta_serve_objects)  # the same program under the name of its server
    install(CODE "file(CREATE_LINK greta-cli
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/greta-server\" SYMBOLIC)")
    set(GRETA_BIN "${CMAKE_INSTALL_FULL_BINDIR}")
    configure_file(tools/serve/systemd/greta-server.service.in greta-server.service @ONLY)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/greta-server.service" tools/serve/systemd/greta-server.socket
      DESTINATION lib/systemd/system)
  endif()
  if(GRETA_STATIC_RUNTIME)
    target_link_options(greta-cli PRIVATE -s)  # CPack would strip libgreta.a too
  endif()
endif()
# The program itself writes its manual page and the completions of shells, from the options that it declares.
function(install_text_of option file)
  install(CODE "
    set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\")
    message(STATUS \"Installing: \${file}\")
    get_filename_component(folder \"\${file}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND \"$<TARGET_FILE:greta-cli>\" ${option} OUTPUT_FILE \"\${file}\"
      COMMAND_ERROR_IS_FATAL ANY)")
endfunction()
if(TARGET greta-cli AND NOT CMAKE_CROSSCOMPILING)
  install_text_of(--manual "${CMAKE_INSTALL_MANDIR}/man1/greta-cli.1")
  install_text_of(--completion-bash "${CMAKE_INSTALL_DATADIR}/bash-completion/completions/greta-cli")
  install_text_of(--completion-zsh "${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_greta-cli")
  # Debian's zsh looks for what packages install here, and into the folder above only below /usr/local.
  install_text_of(--completion-zsh "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions/_greta-cli")
  install_text_of(--completion-fish "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/greta-cli.fish")
endif()
file(GLOB models CONFIGURE_DEPENDS models/*.gguf models/*.txt models/*.md)
install(FILES ${models} DESTINATION "${GRETA_MODELS_DIR}")
install(FILES README.md LICENSE TYPE DOC)
install(DIRECTORY docs TYPE DOC FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")

install(EXPORT gretaTargets NAMESPACE greta:: DESTINATION "${cmake_dir}")
configure_package_config_file(cmake/gretaConfig.cmake.in gretaConfig.cmake
  INSTALL_DESTINATION "${cmake_dir}" PATH_VARS GRETA_MODELS_DIR)
write_basic_package_version_file(gretaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/gretaConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/gretaConfigVersion.cmake" DESTINATION "${cmake_dir}")

file(RELATIVE_PATH GRETA_PC_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
configure_file(cmake/greta.pc.in greta.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/greta.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

if(GRETA_TOP_LEVEL)
  set(CPACK_GENERATOR TGZ DEB)
  set(CPACK_PACKAGE_NAME greta)
  set(CPACK_PACKAGE_VENDOR "The GRETA authors")
  set(CPACK_PACKAGE_CONTACT "The GRETA authors <greta@localhost>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
  set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
  set(CPACK_STRIP_FILES OFF)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SECTION science)
  include(CPack)
endif()
