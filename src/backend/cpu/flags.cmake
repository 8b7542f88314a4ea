# One instruction set per file (backend/cpu/dispatch.cc picks at run time). No -mfma: every rounding counts. -O2 in
# every build type, so that inline functions really are inlined and none compiled for a wide set is left for the
# linker to pick for everyone (tests/cpu/symbols_test). g++ 12's own AVX-512 headers trip -Wuninitialized.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  file(GLOB avx2_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/avx2*.cc)
  file(GLOB avx512_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/avx512*.cc)
  # The generated products are built without the sanitizers' checks: with them avx512_product_super.cc takes 337 s and
  # 1.3 GB instead of 10 s, avx2_product.cc 115 s instead of 2 s. The scalar definition, the drivers and all callers stay
  # checked, and tests/cpu/product_test puts the last row's end against a page that can't be read.
  if(SPILLWAY_SANITIZE)
    file(GLOB product_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/avx*_product*.cc)
    set_property(SOURCE ${product_sources} APPEND PROPERTY COMPILE_FLAGS "-fno-sanitize=all")
  endif()
  set_source_files_properties(${avx2_sources} PROPERTIES COMPILE_OPTIONS "-O2;-mavx2;-mf16c")
  set_source_files_properties(${avx512_sources} PROPERTIES
    COMPILE_OPTIONS
    "-O2;-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vnni;-Wno-uninitialized;-Wno-maybe-uninitialized")
endif()
